// SPDX-License-Identifier: Apache-2.0
// What a person can do with a drawing: point at marks and pick one. The drawings are
// there already (src/report/chart.cpp); here marks and lines get other places, and axes other
// ticks. Text of others only ever becomes the content of a text node.
'use strict';

const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
const set = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const drawn = (name, attributes, parent) => parent.appendChild(
  set(document.createElementNS('http://www.w3.org/2000/svg', name), attributes));
const made = (name, properties, attributes = {}) =>
  set(Object.assign(document.createElement(name), properties), attributes);
const clamped = (value, low, high) => Math.max(low, Math.min(high, value));

const charts = {
  all: [],
  kept: {},  // what a person has chosen and reached, by chart; a page that renews itself keeps it
  renewing: false,  // the content is being replaced, which nobody has asked for
  pointer: null,  // where the mouse rests
};

// A drawing with marks. `items`: {element, text, of}; `of`: place of the configuration.
class Chart {
  constructor(figure, box, page) {
    Object.assign(this, {figure, box, page, name: figure.dataset.chart, items: [], order: [], at: null});
    this.kept = charts.kept[this.name] = charts.kept[this.name] || {};
    // A screen reader leaves its keys to the chart; a table says the same.
    set(box, {id: 'chart-' + this.name, tabindex: 0, role: 'application', 'aria-roledescription': 'chart'});
    this.said = made('p', {className: 'chart-said'}, {role: 'status'});
    this.tip = made('div', {className: 'tip', hidden: true}, {'aria-hidden': 'true'});
    box.after(this.said);
    figure.append(this.tip);
    for (const child of box.children) child.setAttribute('aria-hidden', 'true');
    this.say(this.kept.said || '');
    box.addEventListener('pointermove', (event) => {
      if (event.pointerType === 'touch' || event.buttons !== 0) return;
      charts.pointer = [event.clientX, event.clientY];
      this.pointAt(...charts.pointer);
    });
    box.addEventListener('pointerleave', () => {
      if (charts.renewing) return;
      charts.pointer = null;
      this.leave();
    });
    box.addEventListener('click', (event) => {
      const item = this.nearest(event.clientX, event.clientY);
      if (item) this.pick(item);
    });
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('focus', () => {
      if (charts.renewing) this.go(this.order.find((item) => nameOf(item) === this.kept.mark));
      else if (box.matches(':focus-visible')) this.say(this.keysText());
    });
    box.addEventListener('blur', () => {
      if (charts.renewing) return;
      this.kept.mark = undefined;
      this.leave();
    });
    this.watch = new ResizeObserver(() => requestAnimationFrame(() => this.fit()));
  }

  keysText() {
    return 'Arrow keys go from mark to mark; Enter marks the configuration in the table.';
  }
  // Behind the constructors: what is drawn for paper takes the size of the window.
  begin() {
    this.fit();
    this.watch.observe(this.figure);
    this.figure.classList.add('drawn');
    if (charts.pointer && this.box.contains(document.elementFromPoint(...charts.pointer)))
      this.pointAt(...charts.pointer);
  }
  end() {
    this.watch.disconnect();
  }
  fit() {
    const {width} = this.box.getBoundingClientRect();
    if (width === 0 || width === this.width) return;  // hidden, or the same
    this.width = width;
    this.layout(width);
  }
  layout() {}

  say(text) {
    this.kept.said = text;
    if (this.said.textContent !== text) this.said.textContent = text;
  }
  pick(item) {
    if (item.of === undefined) return;
    this.page.choose(item.of);
    this.say(item.text.replaceAll('\n', ', ') + '. Marked in the table.');
  }
  pointAt(x, y) {
    const item = this.nearest(x, y);
    if (item) this.show(item, x, y);
    else this.leave();
  }
  // What is said of a mark, beside it.
  show(item, x, y) {
    this.leave();
    this.hot = item;
    item.element.classList.add('hot');
    const lines = item.text.split('\n').map((textContent) => made('div', {textContent}));
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const frame = this.figure.getBoundingClientRect();
    const across = x - frame.left + 14, down = y - frame.top + 14;
    const width = this.tip.offsetWidth, height = this.tip.offsetHeight;
    this.tip.style.left = clamped(across, 0, Math.max(0, frame.width - width - 6)) + 'px';
    this.tip.style.top = (down + height > frame.height ? Math.max(0, down - height - 28) : down) + 'px';
  }
  leave() {
    if (this.hot) this.hot.element.classList.remove('hot');
    this.hot = null;
    this.tip.hidden = true;
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const last = this.order.length - 1, at = this.order.indexOf(this.at);
    const steps = {ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last};
    if (event.key in steps && last >= 0) this.go(this.order[clamped(steps[event.key], 0, last)]);
    else if (event.key === 'Enter' && this.at) this.pick(this.at);
    else if (event.key === 'Escape') this.leave();
    else return;
    event.preventDefault();
  }
  go(item) {
    if (!item) return;
    this.at = item;
    this.kept.mark = nameOf(item);
    this.show(item, ...this.placeOf(item));
    const place = this.order.indexOf(item) + 1;
    this.say(`${place} of ${this.order.length}: ${item.text.replaceAll('\n', ', ')}`);
  }
  placeOf(item) {
    const box = item.element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + Math.min(box.height / 2, 10)];
  }
}
const nameOf = (item) => item.text.split('\n')[0];
const itemOf = (element) => {
  const title = element.querySelector('title');
  const text = title ? title.textContent : '';
  if (title) title.remove();  // the browser's own tip would stand beside ours
  return {element, text, of: element.dataset.of === undefined ? undefined : Number(element.dataset.of)};
};
const button = (parent, text, label, action) => {
  const one = parent.appendChild(made('button', {type: 'button', textContent: text}));
  if (label) one.setAttribute('aria-label', label);
  one.addEventListener('click', action);
};
