"""From files, tables and clusters to a summary: sources, engines, reduction."""

from crossfusion.io import engines
from crossfusion.io.engines import dask
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.reduction import RunningSum, finish_summary, reduce_chunk
from crossfusion.io.sources import READERS, Source, open_file, open_files, open_rows, parquet_wide, paths
from crossfusion.io.sources.all_rows import Rows, read_all
from crossfusion.io.sources.array_stores import Store, cut_by_step, read_dense
from crossfusion.io.sources.arrays import read_rows
from crossfusion.io.sources.chunk import Chunk, add_keys, hold_in_memory, stack_rows
from crossfusion.io.sources.feature_order import align_features, find_features
from crossfusion.io.sources.h5ad import read_sparse
from crossfusion.io.sources.hdf5 import Hdf5
from crossfusion.io.sources.manifest import ManifestJoin, check_only_matched, join
from crossfusion.io.sources.manifest_match import list_some
from crossfusion.io.sources.paths import check_file, describe_error, show_path, translate_errors
from crossfusion.io.sources.sampling import Sample
from crossfusion.io.sources.sql import from_sql
from crossfusion.io.sources.zarr import Zarr
from crossfusion.io.summarization import count_rows, open_sources, reduce_sources, summarize
