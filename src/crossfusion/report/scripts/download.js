// The numbers of the page as files.
const quoted = value => {
  const text = value === null || value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
// A spreadsheet would run a name such as =1+1 as a formula.
const inert = name => (/^[=+\-@\t\r]/.test(name) ? `'${name}` : name);
const csv = rows => `${rows.map(row => row.map(quoted).join(',')).join('\r\n')}\r\n`;

function pairsTable() {
  const names = ['distance', 'unbiased', 'overlap', 'lower', 'upper', 'pvalue', 'adjusted'];
  const rows = VIEWS.flatMap(([key]) => listOfPairs().map(([i, j, k]) =>
    [key, inert(groups.names[i]), inert(groups.names[j]), ...names.map(name => at(data.pairs[key], name, k))]));
  return csv([['comparison', 'group_a', 'group_b', ...names], ...rows]);
}

function groupsTable() {
  const rows = groups.names.map((name, k) => [inert(name), groups.rows[k], groups.units ? groups.units[k] : '', groups.dispersion[k], groups.distance[k]]);
  return csv([['group', 'rows', 'units', 'dispersion', 'mean_distance'], ...rows]);
}

function attributionTable() {
  const found = [data.features, data.units].filter(Boolean);
  return csv([['over', 'label', 'share', 'distance_without'],
    ...found.flatMap(entry => entry.labels.map((label, k) => [inert(entry.over), inert(label), entry.share[k], entry.without[k]]))]);
}

const FILES = [
  ['pairs.csv', 'text/csv', pairsTable], ['groups.csv', 'text/csv', groupsTable], ['attribution.csv', 'text/csv', attributionTable],
  ['report.json', 'application/json', () => JSON.stringify(data, null, 1)],
];

function save(name, kind, write) {
  const address = URL.createObjectURL(new Blob([write()], { type: `${kind};charset=utf-8` }));
  const link = make('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function download() {
  body('download').append(make('div', { class: 'controls' }, ...FILES.map(([name, kind, write]) =>
    make('button', { type: 'button', class: 'save', onclick: () => save(name, kind, write) }, name))), listOfGroups());
}

// Every group with its whole name.
function listOfGroups() {
  const header = ['group', 'rows', ...(groups.units ? ['units'] : []), 'variance', 'mean distance'];
  const rows = groups.names.map((name, k) => [fullName(name), whole(groups.rows[k]), ...(groups.units ? [whole(groups.units[k])] : []),
    quantity(groups.dispersion[k]), number(groups.distance[k])]);
  return make('details', { class: 'list' }, make('summary', {}, `All ${groups.names.length} groups`), table('Groups', header, rows));
}
