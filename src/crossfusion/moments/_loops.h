/* The loops over rows, included once per instruction set and type of the rows.
 *
 * TARGET   attribute that lets the compiler use the instruction set
 * LANES    numbers per vector
 * ROW      float or double
 * NAME(f)  name of f for this combination
 *
 * All sums are float64, whatever the rows are. Vectors are those of GCC and Clang, which any processor can run.
 */

typedef double NAME(vector) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef ROW NAME(narrow) __attribute__((vector_size(sizeof(ROW) * LANES), aligned(sizeof(ROW)), may_alias));
#define V NAME(vector)
#define LOAD(x) __builtin_convertvector(*(const NAME(narrow) *)(x), V)
#define AT(x) (*(V *)(x))
#define INLINE TARGET static inline __attribute__((always_inline))

INLINE double NAME(total)(V lanes)
{
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            lanes[k] += lanes[k + width];
    return lanes[0];
}

/* ---- moments ---- */

/* Add a few rows to sum and square, around center: one visit to the accumulators serves all of them. Meanwhile the
 * rows `soon` are prefetched. */
INLINE void NAME(add_abreast)(const ROW *const *rows, const ROW *const *soon, int abreast, int64_t dim,
                              const double *center, double *sum, double *square)
{
    int64_t j = 0;
    for (; j + LANES <= dim; j += LANES) {
        V around = AT(center + j), total = AT(sum + j), squares = AT(square + j);
        for (int r = 0; r < abreast; r++) {
            __builtin_prefetch(soon[r] + j, 0, 3);
            V gap = LOAD(rows[r] + j) - around;
            total += gap;
            squares += gap * gap;
        }
        AT(sum + j) = total;
        AT(square + j) = squares;
    }
    for (; j < dim; j++)
        for (int r = 0; r < abreast; r++) {
            double gap = (double)rows[r][j] - center[j];
            sum[j] += gap;
            square[j] += gap * gap;
        }
}

/* Add rows order[0..number) of one group, some features at a time, so that the accumulators stay in the first-level
 * cache; order goes on for `ahead` rows, which are prefetched. */
TARGET static void NAME(add_run)(const ROW *rows, const int32_t *order, int64_t number, int64_t ahead, int64_t dim,
                                 const double *center, double *sum, double *square)
{
    for (int64_t first = 0; first < dim; first += FEATURES) {
        int64_t width = dim - first < FEATURES ? dim - first : FEATURES, i = 0;
        const ROW *from = rows + first, *some[ABREAST], *soon[ABREAST];
        for (; i + ABREAST <= number; i += ABREAST) {
            for (int r = 0; r < ABREAST; r++) {
                some[r] = from + order[i + r] * dim;
                soon[r] = from + order[i + r + ahead] * dim;
            }
            NAME(add_abreast)(some, soon, ABREAST, width, center + first, sum + first, square + first);
        }
        for (; i < number; i++) {
            some[0] = from + order[i] * dim;
            soon[0] = from + order[i + ahead] * dim;
            NAME(add_abreast)(some, soon, 1, width, center + first, sum + first, square + first);
        }
    }
}

/* Fold the sums of a run into the moments of its group (Chan, Golub, LeVeque 1983). Means are relative to the group's
 * first row, so that an offset common to all rows costs no digits. */
TARGET static void NAME(fold)(double number, int64_t dim, const double *center, const double *sum,
                              const double *square, const double *origin, double *count, double *mean, double *sumsq)
{
    double after = *count + number, share = number / after, weight = *count * share, inverse = 1 / number;
    for (int64_t j = 0; j < dim; j++) {
        double shift = sum[j] * inverse;
        double gap = center[j] - origin[j] + shift - mean[j];
        mean[j] += gap * share;
        sumsq[j] += square[j] - sum[j] * shift + gap * gap * weight;
    }
    *count = after;
}

/* Add rows to the moments of their groups, tile by tile; within a tile group by group. */
TARGET static void NAME(accumulate)(const void *data, const int32_t *codes, struct moments m, struct scratch s)
{
    int64_t dim = m.dim;
    double *center = s.sums, *sum = center + dim, *square = sum + dim;
    for (int64_t start = 0; start < m.rows; start += s.tile) {
        const ROW *rows = (const ROW *)data + start * dim;
        int64_t size = m.rows - start < s.tile ? m.rows - start : s.tile;
        int64_t kept = sort_tile(codes ? codes + start : NULL, size, m.groups, s.order, s.starts);
        for (int64_t i = 0; i < s.ahead; i++) /* beyond the tile: the start of the next one */
            s.order[kept + i] = (int32_t)(size + i < m.rows - start ? size + i : size - 1);
        for (int64_t k = 0, number; k < kept; k += number) {
            int64_t group = codes ? codes[start + s.order[k]] : 0;
            double *origin = m.origin + group * dim, *mean = m.mean + group * dim;
            for (number = 1; number < RUN && k + number < kept; number++)
                if (codes && codes[start + s.order[k + number]] != group)
                    break;
            if (m.count[group] == 0)
                for (int64_t j = 0; j < dim; j++)
                    origin[j] = rows[s.order[k] * dim + j];
            for (int64_t j = 0; j < dim; j++)
                center[j] = origin[j] + mean[j];
            memset(sum, 0, 2 * dim * sizeof(double));
            NAME(add_run)(rows, s.order + k, number, s.ahead, dim, center, sum, square);
            NAME(fold)((double)number, dim, center, sum, square, origin, m.count + group, mean, m.sumsq + group * dim);
        }
    }
}

/* ---- influence of rows on a distance ---- */

/* Add products of powers of s and a of one row to the sums of its group, in the order of `influence.PRODUCTS`. */
INLINE void NAME(add_products)(double s, double a, double *sums)
{
    double ss = s * s, sa = s * a, aa = a * a;
    double products[PRODUCTS] = {ss, sa, aa, ss * ss, ss * sa, ss * aa, sa * aa, aa * aa};
    for (int k = 0; k < PRODUCTS; k++)
        sums[k] += products[k];
}

/* Add some features of a row to its squared distance from the mean and to its gap along the direction; several sums at
 * a time hide the latency of adding. */
INLINE void NAME(measure)(const ROW *row, int64_t dim, const double *mean, const double *direction, double *square,
                          double *along)
{
    V squares[ABREAST] = {{0}}, products[ABREAST] = {{0}};
    int64_t j = 0;
    for (; j + ABREAST * LANES <= dim; j += ABREAST * LANES)
        for (int k = 0; k < ABREAST; k++) {
            __builtin_prefetch((const char *)(row + j + k * LANES) + AHEAD, 0, 3); /* beyond the end: no harm */
            V gap = LOAD(row + j + k * LANES) - AT(mean + j + k * LANES);
            squares[k] += gap * gap;
            products[k] += gap * AT(direction + j + k * LANES);
        }
    for (; j + LANES <= dim; j += LANES) {
        V gap = LOAD(row + j) - AT(mean + j);
        squares[0] += gap * gap;
        products[0] += gap * AT(direction + j);
    }
    *square += NAME(total)((squares[0] + squares[1]) + (squares[2] + squares[3]));
    *along += NAME(total)((products[0] + products[1]) + (products[2] + products[3]));
    for (; j < dim; j++) {
        double gap = (double)row[j] - mean[j];
        *square += gap * gap;
        *along += gap * direction[j];
    }
}

/* Add the influence of rows, in the order of memory; of wide rows some features of a few rows at a time, so that mean
 * and direction stay in the first-level cache. */
TARGET static void NAME(influence)(const void *data, const int32_t *codes, int64_t number, int64_t dim,
                                   const double *mean, const double *direction, const double *dispersion,
                                   double per_unit, double *sums)
{
    const ROW *rows = data;
    for (int64_t start = 0; start < number; start += TOGETHER) {
        int64_t size = number - start < TOGETHER ? number - start : TOGETHER;
        double square[TOGETHER] = {0}, along[TOGETHER] = {0};
        for (int64_t first = 0; first < dim; first += FEATURES) {
            int64_t width = dim - first < FEATURES ? dim - first : FEATURES;
            for (int64_t i = 0; i < size; i++) {
                int64_t group = codes[start + i], here = group * dim + first;
                if (group >= 0)
                    NAME(measure)(rows + (start + i) * dim + first, width, mean + here, direction + here, square + i,
                                  along + i);
            }
        }
        for (int64_t i = 0; i < size;) {
            int64_t group = codes[start + i];
            double of_group[PRODUCTS] = {0};
            for (; i < size && codes[start + i] == group; i++)
                if (group >= 0)
                    NAME(add_products)((square[i] - dispersion[group]) * per_unit, along[i] * per_unit, of_group);
            for (int k = 0; k < PRODUCTS && group >= 0; k++)
                sums[group * PRODUCTS + k] += of_group[k];
        }
    }
}

/* ---- rows from columns ---- */

typedef ROW NAME(line) __attribute__((vector_size(sizeof(ROW) * 8), aligned(sizeof(ROW)), may_alias));

/* Write a square of 8 rows and columns, transposed in registers: the first half zipped with the second, three times. */
INLINE void NAME(transpose_square)(const ROW *const *columns, int64_t row, ROW *out, int64_t dim)
{
    NAME(line) a[8], b[8];
    for (int k = 0; k < 8; k++)
        a[k] = *(const NAME(line) *)(columns[k] + row);
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 4; k++) {
            b[2 * k] = __builtin_shufflevector(a[k], a[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    for (int k = 0; k < 8; k++)
        *(NAME(line) *)(out + k * dim) = a[k];
}

TARGET static void NAME(interleave)(const void *const *addresses, int64_t start, int64_t rows, int64_t dim, void *out)
{
    const ROW *const *columns = (const ROW *const *)addresses;
    ROW *to = out;
    int64_t whole = rows / 8 * 8, wide = dim / 8 * 8;
    for (int64_t j = 0; j < wide; j += 8)
        for (int64_t i = 0; i < whole; i += 8)
            NAME(transpose_square)(columns + j, start + i, to + i * dim + j, dim);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole ? wide : 0; j < dim; j++)
            to[i * dim + j] = columns[j][start + i];
}

/* ---- distances between points ---- */

#ifdef DISTANCES
/* Write squared distances of points start..stop-1 to all points before them, by differences, which keep the digits of
 * close pairs. Two points meet four at a time; 32 points stay in the cache while all others pass. */
TARGET static void NAME(squared_distances)(const double *points, int64_t number, int64_t dim, int64_t start,
                                           int64_t stop, double *out)
{
    for (int64_t some = 0; some < stop; some += 32)
        for (int64_t p = start; p < stop; p += 2) {
            int64_t q = p + 1 < stop ? p + 1 : stop - 1, end = some + 32 < q ? some + 32 : q;
            for (int64_t a = some; a < end; a += 4) {
                const double *first = points + p * dim, *second = points + q * dim, *other[4];
                int64_t index[4], j = 0;
                V sums[2][4] = {{{0}}};
                double rest[2][4] = {{0}};
                for (int r = 0; r < 4; r++) {
                    index[r] = a + r < q ? a + r : q;
                    other[r] = points + index[r] * dim;
                }
                for (; j + LANES <= dim; j += LANES)
                    for (int r = 0; r < 4; r++) {
                        V here = AT(other[r] + j), one = here - AT(first + j), two = here - AT(second + j);
                        sums[0][r] += one * one;
                        sums[1][r] += two * two;
                    }
                for (; j < dim; j++)
                    for (int r = 0; r < 4; r++) {
                        double one = other[r][j] - first[j], two = other[r][j] - second[j];
                        rest[0][r] += one * one;
                        rest[1][r] += two * two;
                    }
                for (int r = 0; r < 4; r++) {
                    double one = NAME(total)(sums[0][r]) + rest[0][r], two = NAME(total)(sums[1][r]) + rest[1][r];
                    out[p * number + index[r]] = out[index[r] * number + p] = one;
                    out[q * number + index[r]] = out[index[r] * number + q] = two;
                }
            }
        }
}

/* ---- sums of members ---- */

/* Fill a table with the sums of all subsets of a few rows, of some of their features; `left` rows are there. */
INLINE void NAME(fill_subsets)(const double *rows, int64_t left, int64_t dim, int64_t width, double *table)
{
    for (int64_t j = 0; j < STRIP; j++)
        table[j] = 0;
    for (int subset = 1; subset < SUBSETS; subset++) {
        int last = subset & 8 ? 3 : subset & 4 ? 2 : subset & 2 ? 1 : 0;
        const double *others = table + (subset - (1 << last)) * STRIP, *row = rows + last * dim;
        for (int64_t j = 0; j < STRIP; j++)
            table[subset * STRIP + j] = others[j] + (j < width && last < left ? row[j] : 0);
    }
}

/* Add the sum of the members of each set to its sums. A few rows at a time have few subsets, whose sums are computed
 * once and looked up for each set (the method of four Russians); their tables stay in the first-level cache. */
TARGET static void NAME(add_members)(const uint8_t *subsets, const double *rows, int64_t sets, int64_t number,
                                     int64_t dim, double *tables, double *sums)
{
    int64_t quads = (number + 3) / 4;
    for (int64_t first = 0; first < dim; first += STRIP) {
        int64_t width = dim - first < STRIP ? dim - first : STRIP;
        for (int64_t start = 0; start < quads; start += TABLES) {
            int64_t some = quads - start < TABLES ? quads - start : TABLES;
            for (int64_t q = 0; q < some; q++)
                NAME(fill_subsets)(rows + 4 * (start + q) * dim + first, number - 4 * (start + q), dim, width,
                                   tables + q * SUBSETS * STRIP);
            for (int64_t p = 0; p < sets; p++) {
                const uint8_t *subset = subsets + p * quads + start;
                double *to = sums + p * dim + first;
                V found[STRIP / LANES] = {{0}};
                for (int64_t q = 0; q < some; q++)
                    for (int k = 0; k < STRIP / LANES; k++)
                        found[k] += AT(tables + (q * SUBSETS + subset[q]) * STRIP + k * LANES);
                if (width == STRIP)
                    for (int k = 0; k < STRIP / LANES; k++)
                        AT(to + k * LANES) += found[k];
                else
                    for (int64_t j = 0; j < width; j++)
                        to[j] += found[j / LANES][j % LANES];
            }
        }
    }
}
#endif

#undef V
#undef LOAD
#undef AT
#undef INLINE
#undef DISTANCES
#undef ROW
#undef NAME
