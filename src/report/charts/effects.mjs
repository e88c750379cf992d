// SPDX-License-Identifier: Apache-2.0
// What each level of a parameter does, with its interval. Enter or a click keeps the configurations that have it.
import {Frame} from './frame.mjs';
import {common, percent, plane, valueAxis} from './look.mjs';

const most = 40;
const farthest = 3;  // an interval that knows nothing would flatten all others

export const effects = (figure, page, kept) => {
  const {data} = page;
  const rows = data.report.effects.main.filter((effect) => effect.measured > 0).map((effect) => {
    const level = effect.level === null ? 'engine' : String(effect.level);
    const {low, value, high} = effect.gain;
    return {name: `${effect.parameter} = ${level}`, parameter: effect.parameter, level, low: low || 0, value: value || 0, high: high || 0,
      known: low > 0 ? 'good' : high < 0 ? 'bad' : 'soft'};
  });
  const order = (row) => row.known === 'soft' ? 1 : 0;
  rows.sort((a, b) => order(a) - order(b) || Math.abs(b.value) - Math.abs(a.value));
  rows.splice(most);
  const keep = (row) => {
    const k = data.parameters.findIndex((parameter) => parameter.name === row.parameter);
    if (k < 0) return;
    const same = (value) => value === row.level || Number(value) === Number(row.level);  // 1e-05 is 0.00001
    const at = data.parameters[k].values.findIndex(same);
    if (at < 0) return;
    const left = new Set(data.configurations.flatMap((one, of) => one.settings[k] === at ? [of] : []));
    kept.row = row.name;
    page.keep(left, frame);
    frame.say(`${left.size} configurations have ${row.name}; the table shows these.`);
  };
  const draw = (c, narrow) => {
    const ends = rows.flatMap((row) => [row.low, row.value, row.high]).map((end) => Math.max(-1, Math.min(farthest, end)));
    const low = Math.min(0, ...ends), high = Math.max(0, ...ends), room = 0.05 * (high - low) || 0.05;
    const data_ = rows.map((row, index) => ({value: [row.value, index, row.low, row.high],
      text: `${row.name}\n${percent(row.value)}, interval ${percent(row.low)} to ${percent(row.high)}` +
        (row.known === 'soft' ? '\nnot known whether it helps' : '')}));
    const renderItem = (params, api) => {
      const row = rows[params.dataIndex];
      const within = (share) => Math.max(low - room, Math.min(high + room, share));
      const [x, y0] = api.coord([within(row.value), params.dataIndex]);
      const y = narrow ? y0 + 9 : y0;
      const [from] = api.coord([within(row.low), params.dataIndex]);
      const [to] = api.coord([within(row.high), params.dataIndex]);
      const color = c[row.known];
      const children = [{type: 'rect', shape: {x: params.coordSys.x, y: y0 - 12, width: params.coordSys.width, height: 24}, style: {fill: 'transparent'}},
        {type: 'line', shape: {x1: from, y1: y, x2: to, y2: y}, style: {stroke: color, lineWidth: 2.5}},
        {type: 'circle', shape: {cx: x, cy: y, r: 5}, style: {fill: color, stroke: c.ground, lineWidth: 1}, emphasis: {style: {stroke: c.text, lineWidth: 2}}}];
      if (narrow)
        children.push({type: 'text', style: {text: row.name, x: params.coordSys.x + 2, y: y0 - 14, fill: c.text, font: '12px system-ui, sans-serif', width: params.coordSys.width - 4,
          overflow: 'truncate', stroke: c.ground, lineWidth: 3}});
      return {type: 'group', children};
    };
    const x = valueAxis('', [low - room, high + room], c, true);
    return {
      option: {...common(c), grid: {...plane, right: 24}, xAxis: {...x, splitLine: {show: true, lineStyle: {color: c.grid}},
        axisLabel: {...x.axisLabel, formatter: (share) => Math.round(share * 100) + ' %'}},
        yAxis: {type: 'category', inverse: true, data: rows.map((row) => row.name), axisLine: {show: false, onZero: false}, axisTick: {show: false},
          axisLabel: {show: !narrow, color: c.text, fontSize: 12, width: 260, overflow: 'truncate', interval: 0}},
        series: [{type: 'custom', id: 'effects', data: data_, renderItem, encode: {x: [0, 2, 3], y: 1},
          clip: true}]},
      height: (narrow ? 40 : 24) * rows.length + 50, points: data_.map((one, index) => ({series: 'effects', index, text: one.text, value: one.value})),
      label: `Effect of each flag: ${rows.length} levels`};
  };
  const frame = new Frame(figure, 'effects', page, kept, draw);
  let listening = false;
  frame.after = () => {
    if (!listening) frame.chart.on('click', (event) => keep(rows[event.dataIndex]));
    listening = true;
    const row = rows.find((one) => one.name === kept.row);
    if (row) keep(row);
  };
  frame.cleared = () => {
    if (kept.row !== undefined) frame.say('');
    kept.row = undefined;
  };
  frame.box.addEventListener('keydown', (event) => { if (event.key === 'Enter' && frame.at >= 0) keep(rows[frame.at]); });
  return frame;
};
