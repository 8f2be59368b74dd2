// Draw what the page has places for.
document.body.append(note);
const WORK = [['ranks', rankedGroups], ['cloud', cloud], ['matrix', matrix], ['forest', forest], ['pair', panel], ['levels', levels],
  ['plane', plane], ['versions', plane],
  ['drift', drift], ['attribution', attribution], ['null', chance], ['download', download]];
theme();
copying();
for (const [id, work] of WORK) if (body(id)) work();
addEventListener('scroll', follow, { passive: true });
addEventListener('keydown', event => { if (event.key === 'Escape') hush(); });
