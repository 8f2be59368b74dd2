// Draw what the page has places for.
document.body.append(note);
const WORK = [['matrix', matrix], ['forest', forest], ['pair', pair], ['levels', levels], ['plane', plane], ['cloud', cloud],
  ['drift', drift], ['attribution', attribution], ['null', chance], ['download', download]];
theme();
for (const [id, work] of WORK) if (body(id)) work();
addEventListener('scroll', follow, { passive: true });
addEventListener('keydown', event => { if (event.key === 'Escape') hush(); });
