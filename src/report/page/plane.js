// SPDX-License-Identifier: Apache-2.0
// Round numbers, as round_ticks and tick_text of chart.cpp have them.
const ticksOf = (low, high, about, least) => {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw)), share = raw / power;
  const step = Math.max(least, power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10));
  const result = [];
  for (let n = Math.ceil(low / step); result.length < 4 * about && n * step <= high + step * 1e-9; ++n) {
    const value = n * step, scale = Math.abs(value) >= 1e6 ? 1e6 : 1;
    const digits = clamped(-Math.floor(Math.log10(step / scale) + 1e-9), 0, 9);
    result.push([value, (value / scale).toFixed(digits) + (scale > 1 ? ' M' : '')]);
  }
  return result;
};
const farFromMark = 24;  // pixels

// Marks and lines between two axes.
class Plane extends Chart {
  constructor(figure, box, page) {
    super(figure, box, page);
    const numbers = (text) => text.split(' ').map(Number);
    const [, , width, height] = numbers(box.getAttribute('viewBox'));
    this.clip = box.querySelector('.lines');
    const of = (name) => Number(this.clip.getAttribute(name));
    const [left, top] = [of('x'), of('y')];
    this.room = {left, top, right: width - left - of('width'), bottom: height - top - of('height'), height};
    this.axes = {};
    for (const name of ['x', 'y']) {
      const [low, high] = numbers(box.dataset[name]);
      const ticks = box.dataset[name].split(' ')[2];
      this.axes[name] = {low, high, ticks, label: box.querySelector('.label.' + name)};
    }
    this.items = all('.mark', box).map((element) => ({...itemOf(element),
      x: Number(element.dataset.x), y: Number(element.dataset.y)}));
    this.lines = all('.line', box).map((element) => ({element, stepped: element.matches('.stepped'),
      points: element.dataset.points ? element.dataset.points.split(',').map(numbers) : []}));
  }

  // Other figures on an axis.
  axis(name, label, values, changes = {}) {
    const axis = this.axes[name], known = values.filter(Number.isFinite);
    const low = Math.min(...known), high = Math.max(...known);
    const flat = !(high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)));
    const room = flat ? 0.05 * Math.abs(high) || 1 : 0.05 * (high - low);
    Object.assign(axis, known.length ? {low: low - room, high: high + room} : {low: 0, high: 1}, changes);
    axis.label.textContent = label;
  }
  // A figure's place in the drawing.
  scale(name) {
    const {low, high} = this.axes[name], {left, top, right, bottom, height} = this.room;
    const [from, to] = name === 'x' ? [left, this.width - right] : [height - bottom, top];
    return {low, high, from, to, place: (value) => from + (to - from) * (value - low) / (high - low)};
  }
  layout() {
    if (!this.width) return;
    const x = this.scale('x'), y = this.scale('y'), short = (value) => value.toFixed(1);
    set(this.box, {viewBox: `0 0 ${short(this.width)} ${this.room.height}`});
    const frame = {x: x.from, y: y.to, width: x.to - x.from, height: y.from - y.to};
    set(this.clip, {...frame, viewBox: Object.values(frame).map(short).join(' ')});
    set(this.box.querySelector('.axis'), {d: `M${x.from} ${y.to}V${y.from}H${short(x.to)}`});
    set(this.axes.x.label, {x: (x.from + x.to) / 2});
    this.drawTicks(x, y);
    for (const item of this.items) this.move(item, x, y);
    for (const {element, points, stepped} of this.lines) {
      const step = ([a, b], i) => i === 0 ? `M${short(x.place(a))} ${short(y.place(b))}`
        : stepped ? `H${short(x.place(a))}V${short(y.place(b))}` : `L${short(x.place(a))} ${short(y.place(b))}`;
      set(element, {d: points.map(step).join('')});
    }
    this.order = this.items.filter((item) => item.seen).sort((p, q) => p.x - q.x || p.y - q.y);
  }
  drawTicks(x, y) {
    const group = this.box.querySelector('.ticks'), least = (axis) => axis.ticks === 'whole' ? 1 : 0;
    group.replaceChildren();
    const text = (attributes, content) => {
      drawn('text', {class: 'tick', ...attributes}, group).textContent = content;
    };
    if (this.axes.y.ticks !== 'none')
      for (const [value, said] of ticksOf(y.low, y.high, 5, least(this.axes.y))) {
        drawn('path', {class: 'grid', d: `M${x.from} ${y.place(value)}H${x.to}`}, group);
        text({x: x.from - 6, y: y.place(value) + 4, 'text-anchor': 'end'}, said);
      }
    if (this.axes.x.ticks !== 'none')
      for (const [value, said] of ticksOf(x.low, x.high, this.width < 560 ? 4 : 8, least(this.axes.x))) {
        drawn('path', {class: 'grid', d: `M${x.place(value)} ${y.from}v5`}, group);
        text({x: x.place(value), y: y.from + 18, 'text-anchor': 'middle'}, said);
      }
    for (const one of all('.tick[data-x]', this.box)) set(one, {x: x.place(Number(one.dataset.x))});
  }
  move(item, x, y) {
    const within = (value, {low, high}) => low <= value && value <= high;
    item.seen = within(item.x, x) && within(item.y, y);
    item.place = item.seen ? [x.place(item.x), y.place(item.y)] : null;
    if (item.seen) {
      set(item.element, {transform: `translate(${item.place.map((one) => one.toFixed(1)).join(' ')})`});
      item.element.removeAttribute('display');
    } else {
      set(item.element, {display: 'none'});
    }
  }
  nearest(clientX, clientY) {
    const box = this.box.getBoundingClientRect(), [px, py] = [clientX - box.x, clientY - box.y];
    let best = null, least = farFromMark;
    for (const item of this.order) {
      const [x, y] = item.place;
      const far = Math.hypot(x - px, y - py);
      if (far <= least) [best, least] = [item, far];
    }
    return best;
  }
  placeOf(item) {
    const box = this.box.getBoundingClientRect();
    return [box.x + item.place[0], box.y + item.place[1]];
  }
}
