// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: each thread is a configuration. A stretch of an axis that is chosen, by
// mouse or by the fields above, keeps the threads through it, here and in the table.
class Parallel extends Chart {
  constructor(figure, box, page) {
    super(figure, box, page);
    this.sides = Number(box.dataset.sides);
    this.items = this.order = all('.thread', box).map((element) => {
      const places = element.getAttribute('d').slice(1).split('L').map((one) => one.split(' ').map(Number));
      return {...itemOf(element), places: places.map(([across]) => across / 1000), downs: places.map(([, down]) => down)};
    }).reverse();  // the best first
    const {parameters, configurations, goal} = page.data;
    this.rails = all('.rail', box).map((element, k) => {
      const parameter = parameters[k], down = Number(element.getAttribute('transform').match(/ ([\d.]+)/)[1]);
      if (k + 1 === all('.rail', box).length) return {element, down, title: goal, values: []};
      const idle = configurations.some((one) => one.settings[k] === null);
      return {element, down, title: parameter.name, values: idle ? ['–', ...parameter.values] : parameter.values};
    });
    // What was chosen are places on an axis: where a trial has brought another value, they are of
    // other values.
    const values = Object.fromEntries(this.rails.map((rail) => [rail.title, rail.values.join('\n')]));
    this.kept.chosen = Object.fromEntries(Object.entries(this.kept.chosen || {})
      .filter(([title]) => title in values && this.kept.values[title] === values[title]));
    this.kept.values = values;
    this.rails.forEach((rail) => this.addBrush(rail));
    this.addFields();
    if (Object.keys(this.kept.chosen).length > 0) this.brushed();
  }

  across(place) {
    return this.sides + (this.width - 2 * this.sides) * place;
  }
  layout(width) {
    const height = Number(this.box.getAttribute('viewBox').split(' ')[3]);
    set(this.box, {viewBox: `0 0 ${width.toFixed(1)} ${height}`});
    set(this.box.querySelector('.threads'),
      {transform: `translate(${this.sides}) scale(${(width - 2 * this.sides) / 1000} 1)`});
    for (const {element} of this.rails) {
      set(element.querySelector('.axis'), {d: `M${this.sides} 0H${width - this.sides}`});
      set(element.querySelector('.grip'), {width});
      for (const stop of all('path[data-place]', element))
        set(stop, {d: `M${this.across(Number(stop.dataset.place)).toFixed(1)} 0v5`});
      this.placeTicks(all('text[data-place]', element), width);
    }
    this.drawBrushes();
  }
  // Those at the ends, and between them what there is room for.
  placeTicks(ticks, width) {
    const extents = ticks.map((tick) => {
      tick.removeAttribute('display');
      const half = tick.getComputedTextLength() / 2 + 4;
      const at = clamped(this.across(Number(tick.dataset.place)), half, width - half);
      set(tick, {x: at.toFixed(1)});
      return [at - half, at + half];
    });
    let free = 0;
    extents.forEach(([from, to], i) => {
      const ends = i === 0 || i + 1 === ticks.length;
      if (!ends && (from < free || to > extents.at(-1)[0])) set(ticks[i], {display: 'none'});
      else free = to;
    });
  }
  nearest(clientX, clientY) {
    const box = this.box.getBoundingClientRect(), [px, py] = [clientX - box.x, clientY - box.y];
    let best = null, least = 10;  // pixels
    for (const item of this.items) {
      const k = item.downs.findIndex((down, i) => i > 0 && item.downs[i - 1] <= py && py <= down);
      if (k < 0 || item.element.classList.contains('off')) continue;
      const share = (py - item.downs[k - 1]) / (item.downs[k] - item.downs[k - 1]);
      const far = Math.abs(this.across(item.places[k - 1] + share * (item.places[k] - item.places[k - 1])) - px);
      if (far < least) [best, least] = [item, far];
    }
    return best;
  }
  placeOf(item) {
    const box = this.box.getBoundingClientRect();
    return [box.x + this.across(item.places[0]), box.y + item.downs[0]];
  }

  addBrush(rail) {
    const {element} = rail;
    const grip = drawn('rect', {class: 'grip', y: -11, height: 22, fill: 'transparent'}, element);
    rail.brush = drawn('rect', {class: 'brush', y: -10, height: 20, display: 'none'}, element);
    let from = null;
    const place = (event) => {
      const across = event.clientX - this.box.getBoundingClientRect().x;
      return clamped((across - this.sides) / (this.width - 2 * this.sides), 0, 1);
    };
    grip.addEventListener('pointerdown', (event) => {
      this.dragged = event.pointerType !== 'touch';  // the click behind it picks nothing
      if (!this.dragged) return;
      from = place(event);
      grip.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    grip.addEventListener('pointermove', (event) => {
      if (from === null) return;
      const now = place(event);
      this.kept.chosen[rail.title] = [Math.min(from, now), Math.max(from, now)];
      this.drawBrushes();
    });
    grip.addEventListener('pointerup', (event) => {
      if (from === null) return;
      if (Math.abs(place(event) - from) * this.width < 4) delete this.kept.chosen[rail.title];
      from = null;
      this.brushed();
    });
    this.box.addEventListener('pointerdown', (event) => { if (event.target !== grip) this.dragged = false; }, true);
  }
  drawBrushes() {
    for (const {brush, title} of this.rails) {
      const stretch = this.kept.chosen[title];
      if (!stretch) set(brush, {display: 'none'});
      else if (this.width) {
        const [from, to] = stretch.map((one) => this.across(clamped(one, 0, 1)));
        set(brush, {x: from - 2, width: to - from + 4}).removeAttribute('display');
      }
    }
  }
  // The configurations that pass through every chosen stretch.
  brushed() {
    const {configurations} = this.page.data, chosen = this.kept.chosen;
    const inside = ({places}) => this.rails.every(({title}, k) =>
      !chosen[title] || (chosen[title][0] <= places[k] && places[k] <= chosen[title][1]));
    const left = this.items.filter(inside);
    const any = Object.keys(chosen).length > 0;
    for (const item of this.items) item.element.classList.toggle('off', any && !left.includes(item));
    this.order = left;
    this.drawBrushes();
    this.page.keep(any ? new Set(left.map((item) => item.of)) : null, this);
    const best = configurations[Math.min(...left.map((item) => item.of))];
    this.say(!any ? '' : `${left.length} of ${this.items.length} configurations pass through the chosen values; ` +
      'the table shows these.' + (best ? ` The best: ${best.name}, ${best.figure === null ? '–' : best.figure}.` : ''));
  }
  cleared() {
    if (Object.keys(this.kept.chosen).length === 0) return;
    this.kept.chosen = {};
    this.say('');
    this.order = this.items;
    for (const item of this.items) item.element.classList.remove('off');
    this.drawBrushes();
  }
  // The same by keys and by finger.
  addFields() {
    const tools = made('div', {className: 'tools'});
    const field = (text, id) => {
      const label = tools.appendChild(made('label', {textContent: text + ' '}));
      return label.appendChild(made('select', {id}));
    };
    const fill = (select, values) => select.replaceChildren(...values.map((textContent, value) => made('option', {textContent, value})));
    const which = field('Only', 'only-axis'), value = field('=', 'only-value');
    const named = this.rails.slice(0, -1);
    fill(which, named.map((rail) => rail.title));
    fill(value, named[0].values);
    which.addEventListener('change', () => fill(value, named[Number(which.value)].values));
    button(tools, 'Keep these', '', () => {
      const {title, values} = named[Number(which.value)], last = values.length - 1;
      this.kept.chosen[title] = [-0.3, 0.3].map((near) => (Number(value.value) + near) / last);
      this.brushed();
    });
    button(tools, 'All', '', () => {
      this.kept.chosen = {};
      this.brushed();
    });
    this.figure.prepend(tools);
  }
}
