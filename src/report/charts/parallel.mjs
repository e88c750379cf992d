// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: each line is a configuration. A stretch of an axis that is chosen, by mouse or by the fields above,
// keeps the lines through it, here and in the table.
import {Frame} from './frame.mjs';
import {common, shown} from './look.mjs';

const without = '–';  // not active under what else the configuration says
const mostAxes = 14;

export const parallel = (figure, page, kept) => {
  const {data} = page;
  kept.chosen = kept.chosen || {};  // title of an axis -> [[low, high]]
  const named = data.parameters.slice(0, mostAxes).map((parameter, k) => {
    const idle = data.configurations.some((one) => one.settings[k] === null);
    return {title: parameter.name, values: idle ? [without, ...parameter.values] : parameter.values,
      of: (one) => one.settings[k] === null ? 0 : one.settings[k] + (idle ? 1 : 0)};
  });
  // What was chosen are places on an axis: where a trial has brought another value, they are of other values.
  const values = Object.fromEntries(named.map((parameter) => [parameter.title, parameter.values.join('\n')]));
  for (const title of Object.keys(kept.chosen))
    if (title in values && (kept.values || {})[title] !== values[title]) delete kept.chosen[title];
  kept.values = values;
  const figures = data.configurations.map((one) => one.figure).filter((value) => value !== null);
  const low = Math.min(...figures), high = Math.max(...figures);
  const crowd = Math.sqrt(Math.min(1, 60 / data.configurations.length));  // of many lines each is fainter
  const strengthOf = (one) => {
    if (one.kind === 'recommended' || one.kind === 'usual') return 1;
    if (one.figure === null || !(high > low)) return 0.4 * crowd;
    const place = (one.figure - low) / (high - low);
    return (0.2 + 0.6 * (data.goal.less ? 1 - place : place) ** 2) * crowd;
  };
  const draw = (c, narrow) => {
    const axis = {nameTextStyle: {color: c.text, fontSize: 12}, axisLine: {lineStyle: {color: c.soft}}, axisTick: {lineStyle: {color: c.soft}},
      axisLabel: {color: c.text, fontSize: 11, textBorderColor: c.ground, textBorderWidth: 3, hideOverlap: true, width: narrow ? 70 : 110, overflow: 'truncate'},
      areaSelectStyle: {width: narrow ? 26 : 22, borderColor: c.warn, borderWidth: 1, color: c.warn, opacity: 0.3}};
    const axes = named.map(({title, values}, k) => ({...axis, id: 'axis-' + k, dim: k, name: title, type: 'category', data: values}));
    axes.push({...axis, id: 'axis-' + named.length, dim: named.length, name: data.goal.title, type: 'value', scale: true});
    axes.forEach((one, k) => {
      Object.assign(one, narrow ? {nameLocation: 'start', nameGap: 0, nameTextStyle: {...one.nameTextStyle, align: 'left', verticalAlign: 'bottom', padding: [0, 0, 6, 0],
        textBorderColor: c.ground, textBorderWidth: 3}}
        : {nameLocation: 'end', nameGap: 12 + 18 * (k % 2), nameTextStyle: {...one.nameTextStyle, width: 2 * 900 / axes.length, overflow: 'truncate',
          align: k === 0 ? 'left' : k + 1 === axes.length ? 'right' : 'center', padding: k === 0 ? [0, 0, 0, -36] : k + 1 === axes.length ? [0, -56, 0, 0] : 0}});
    });
    const styles = {recommended: {color: c.good, width: 4}, usual: {color: c.other, width: 3}, failed: {color: c.bad, width: 1.5, type: 'dashed'},
      refused: {color: c.warn, width: 1.5}, passing: {color: c.accent, width: 1.5}};
    const lines = data.configurations.map((one, of) => ({
      of, value: [...named.map((parameter) => parameter.values[parameter.of(one)]), one.figure === null ? NaN : one.figure],
      lineStyle: {...styles[one.kind], opacity: strengthOf(one)},
      text: `${one.name}\n${data.goal.title}: ${shown(one.figure)}${one.verdict ? '\n' + one.verdict : ''}`}));
    const onTop = (line) => ['usual', 'recommended'].indexOf(data.configurations[line.of].kind);
    lines.reverse().sort((a, b) => onTop(a) - onTop(b));  // the best are drawn last, on top
    const series = [{type: 'parallel', id: 'lines', data: lines, smooth: false, inactiveOpacity: 0.04, activeOpacity: 0.9,
      emphasis: {lineStyle: {color: c.warn, width: 5, opacity: 1}}}];
    const points = lines.map((line, index) => ({series: 'lines', index, text: line.text, of: line.of})).reverse();
    return {
      option: {...common(c), parallelAxis: axes, series, parallel: narrow ? {layout: 'vertical', left: 14, right: 22, top: 40, bottom: 24}
        : {layout: 'horizontal', left: 44, right: 64, top: 56, bottom: 18}},
      height: narrow ? 64 + 54 * axes.length : 380, points,
      label: `Parallel coordinates: ${lines.length} configurations over ${named.length} parameters`};
  };
  const frame = new Frame(figure, 'parallel', page, kept, draw);
  const titles = [...named.map((parameter) => parameter.title), data.goal.title];

  // The configurations that pass through every chosen stretch.
  const told = () => {
    const keeps = Object.entries(kept.chosen).filter(([, stretches]) => stretches.length > 0);
    if (keeps.length === 0) {
      page.keep(null, frame);
      frame.say('');
      return;
    }
    const left = [];
    data.configurations.forEach((one, of) => {
      const inside = ([title, stretches]) => {
        const k = titles.indexOf(title);
        const place = k < named.length ? named[k].of(one) : one.figure;
        return k < 0 || (place !== null && stretches.some(([from, to]) => from <= place && place <= to));
      };
      if (keeps.every(inside)) left.push(of);
    });
    page.keep(new Set(left), frame);
    frame.say(`${left.length} of ${data.configurations.length} configurations pass through the chosen values; the table shows these.` +
      (left.length > 0 ? ` The best: ${data.configurations[left[0]].name}, ${shown(data.configurations[left[0]].figure)}.` : ''));
  };
  const brush = () => titles.forEach((title, k) => frame.chart.dispatchAction(
    {type: 'axisAreaSelect', parallelAxisId: 'axis-' + k, intervals: kept.chosen[title] || [], ours: true}));
  const apply = () => {
    brush();
    told();
  };
  frame.cleared = () => {
    if (Object.keys(kept.chosen).length === 0) return;
    kept.chosen = {};
    frame.say('');
    if (frame.chart) brush();
  };
  let listening = false;
  frame.after = () => {
    if (!listening) frame.chart.on('axisareaselected', (event) => {
      if (event.ours) return;
      const k = Number(String(event.parallelAxisId || '').split('-')[1]);
      if (Number.isInteger(k)) kept.chosen[titles[k]] = event.intervals;
      told();
    });
    listening = true;
    if (Object.values(kept.chosen).some((stretches) => stretches.length > 0)) apply();
  };

  // The same by keys and by finger.
  const tools = document.createElement('div');
  tools.className = 'tools chart-tools';
  const field = (text, id, options) => {
    const label = tools.appendChild(document.createElement('label'));
    label.textContent = text + ' ';
    const select = label.appendChild(document.createElement('select'));
    select.id = id;
    const fill = (values) => select.replaceChildren(...values.map((value, i) => {
      const option = document.createElement('option');
      option.value = i;
      option.textContent = value;
      return option;
    }));
    fill(options);
    return [select, fill];
  };
  const [which, ] = field('Only', 'only-axis', named.map((parameter) => parameter.title));
  const [value, fillValues] = field('=', 'only-value', named[0].values);
  which.addEventListener('change', () => fillValues(named[Number(which.value)].values));
  const button = (text, action) => {
    const one = tools.appendChild(document.createElement('button'));
    Object.assign(one, {type: 'button', textContent: text});
    one.addEventListener('click', action);
  };
  button('Keep these', () => {
    const at = Number(value.value);
    kept.chosen[named[Number(which.value)].title] = [[at - 0.3, at + 0.3]];
    apply();
  });
  button('All', () => {
    kept.chosen = {};
    apply();
  });
  figure.prepend(tools);
  return frame;
};
