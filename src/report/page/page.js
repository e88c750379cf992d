// SPDX-License-Identifier: Apache-2.0
// The page around its charts: tables that sort and filter, the choice of a configuration, the
// download. Without it everything is seen all the same.
document.documentElement.classList.add('has-script');

// A column's button sorts by it.
const sortable = (table) => all('thead th', table).forEach((head, column) => {
  const key = ({cells: {[column]: cell}}) => cell.dataset.value === undefined ? cell.textContent.toLowerCase()
    : cell.dataset.value === '' ? null : Number(cell.dataset.value);
  const title = head.textContent;
  head.replaceChildren();
  button(head, title, '', () => {
    const up = head.getAttribute('aria-sort') !== 'ascending';
    for (const other of all('thead th', table)) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const rows = Array.from(table.tBodies[0].rows, (row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = a < b ? -1 : a > b ? 1 : 0;
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  });
});

const copyButton = (one) => one.addEventListener('click', async () => {
  const source = document.getElementById(one.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    one.textContent = 'Copied';
  } catch (error) {
    getSelection().selectAllChildren(source);
    one.textContent = 'Selected: press Ctrl-C';
  }
});

// Rows are kept by their text.
const setUpRows = () => {
  const filter = document.getElementById('filter'), said = document.getElementById('shown');
  if (!filter) return;
  filter.addEventListener('input', () => {
    const wanted = filter.value.toLowerCase(), rows = all('#results tbody tr');
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    said.textContent = wanted && `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows: with this text`;
  });
};

// A configuration that is chosen is seen in its row and in all drawings.
const setUpChoice = (data) => {
  const mark = (index) => {
    for (const one of all('.chosen')) one.classList.remove('chosen');
    for (const one of all(`[data-of="${index}"]`)) one.classList.add('chosen');
    charts.kept.chosen = data.configurations[index].name;
  };
  for (const row of all('#results tbody tr'))
    for (const event of ['mouseenter', 'focusin', 'click']) row.addEventListener(event, () => mark(Number(row.dataset.of)));
  const before = data.configurations.findIndex((one) => one.name === charts.kept.chosen);
  if (before >= 0) mark(before);
  return (index) => {
    mark(index);
    const row = document.querySelector('#results .chosen'), frame = row.closest('.wide');
    frame.scrollTop = row.offsetTop - frame.clientHeight / 2;
  };
};

const setUpDownload = (data) => document.getElementById('get-json').addEventListener('click', () => {
  const text = JSON.stringify(data.report, null, 2) + '\n';
  const link = made('a', {href: URL.createObjectURL(new Blob([text], {type: 'application/json'})), download: data.study + '.json'});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});

// Each time that the content is new.
const showPage = () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  // On a narrow screen each row is a list of its cells, each with its column's title.
  for (const table of all('.wide table')) {
    const titles = all('thead th', table).map((head) => head.textContent);
    for (const row of all('tbody tr', table))
      Array.from(row.cells).forEach((cell, column) => { cell.dataset.title = titles[column]; });
  }
  all('table.sortable').forEach(sortable);
  all('button[data-copy]').forEach(copyButton);
  setUpRows();
  setUpDownload(data);
  charts.show({data, choose: setUpChoice(data)});
};
showPage();
