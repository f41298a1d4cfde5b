const leastMs = 60_000; // shown at least, although the server is younger

// One chart, drawn as SVG in CSS pixels. All have the same margins, so that their plots align.
const margin = { left: 64, right: 14, top: 10, bottom: 24 };

const svg = (name, attributes, ...children) => {
	const element = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) {
		element.setAttribute(key, typeof value === "number" ? Math.round(value * 10) / 10 : value);
	}
	element.append(...children);
	return element;
};

// valueAxis returns the ticks, their labels, and the share of the height for a value.
const valueAxis = (chart, values, height) => {
	const largest = Math.max(chart.least, ...values);
	if (!chart.log) {
		const ticks = linearTicks(chart.kind, largest, Math.max(2, Math.round(height / 48)));
		return { ticks, texts: tickTexts(chart.kind, ticks), share: (v) => v / ticks.at(-1) };
	}
	const positive = values.filter((v) => v > 0);
	const ticks = positive.length > 0 ? logTicks(Math.min(...positive), largest) : logTicks(chart.least, 1000 * chart.least);
	const from = Math.log(ticks[0]), to = Math.log(ticks.at(-1));
	return { ticks, texts: tickTexts(chart.kind, ticks, true), share: (v) => (Math.log(Math.max(v, ticks[0])) - from) / (to - from) };
};

// runs splits points at missing values and at gaps in time.
const runs = (points, gapMs) => {
	const all = [];
	let lastMs = -Infinity;
	for (const point of points) {
		if (point.value === null) {
			lastMs = -Infinity;
			continue;
		}
		if (point.ms - lastMs > gapMs) {
			all.push([]);
		}
		all.at(-1).push(point);
		lastMs = point.ms;
	}
	return all;
};

const number = (v) => v.toFixed(1);

// linePath returns a path through points. A single point is a dot: a line of no length with round ends.
const linePath = (run, x, y) => "M" + run.map((p) => `${number(x(p.ms))} ${number(y(p.value))}`).join("L") + (run.length === 1 ? "h0" : "");
const areaPath = (run, x, y, bottom) => `${linePath(run, x, y)}V${number(bottom)}H${number(x(run[0].ms))}Z`;

class Chart {
	constructor(definition, figure) {
		Object.assign(this, definition);
		this.figure = figure;
		this.plot = figure.querySelector(".plot");
		const entries = this.lines.map(({ col }) => figure.querySelector(`[data-col="${col}"]`));
		this.values = entries.map((entry) => entry.querySelector("b"));
		this.names = entries.map((entry) => [...entry.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.data.trim()).join(""));
		this.back = svg("g", {});
		this.curves = svg("svg", { class: "curves" });
		this.cross = svg("g", { class: "cross" });
		this.svg = svg("svg", { "aria-hidden": "true" }, this.back, this.curves, this.cross);
		this.plot.replaceChildren(this.svg);
		this.resize();
	}

	// resize measures the plot: the only reading of layout, apart from the pointer's place.
	resize() {
		this.width = this.plot.clientWidth;
		this.height = this.plot.clientHeight;
		this.inner = { width: this.width - margin.left - margin.right, height: this.height - margin.top - margin.bottom };
		this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
	}

	// draw draws a span of time.
	draw(samples, span) {
		this.span = span;
		const { width, height } = this.inner;
		if (width <= 0 || height <= 0) {
			return;
		}
		const [first, end] = samples.within(span);
		const points = this.lines.map(({ col }) => samples.points(col, this.kind, Math.max(0, first - 1), end + 1));
		const visible = points.flat().filter((p) => p.value !== null && p.ms >= span.from && p.ms <= span.to).map((p) => p.value);
		const limit = this.max ? samples.value(this.max, this.kind, end - 1) : null;
		const shown = limit !== null && limit > 0 && Math.max(0, ...visible) >= limit / 4; // a distant limit would flatten the curve
		this.axis = valueAxis(this, shown ? [...visible, limit] : visible, height);
		this.x = (ms) => (width * (ms - span.from)) / (span.to - span.from);
		this.y = (value) => height * (1 - this.axis.share(value));
		this.back.replaceChildren(...this.grid(span), ...samples.starts.flatMap((start) => this.start(start, span)));
		for (const [name, value] of Object.entries({ x: margin.left, y: margin.top, width, height })) {
			this.curves.setAttribute(name, value);
		}
		this.curves.replaceChildren(...points.flatMap((line, i) => this.curve(line, this.lines[i].ink, samples.gapMs)));
		if (shown) {
			this.curves.append(svg("line", { class: "bound", x1: 0, x2: width, y1: this.y(limit), y2: this.y(limit) }));
		}
	}

	grid(span) {
		const { width, height } = this.inner, bottom = margin.top + height, parts = [];
		this.axis.ticks.forEach((tick, i) => {
			const y = margin.top + this.y(tick);
			parts.push(svg("line", { class: tick === 0 ? "axis" : "grid", x1: margin.left, x2: margin.left + width, y1: y, y2: y }));
			parts.push(svg("text", { x: margin.left - 8, y: y + 4, "text-anchor": "end" }, this.axis.texts[i]));
		});
		this.times = [];
		for (const { ms, text } of timeTicks(span.from, span.to, width)) {
			const x = margin.left + this.x(ms);
			parts.push(svg("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
			if (x > margin.left + 16 && x < margin.left + width - 12) {
				this.times.push({ x, label: svg("text", { x, y: bottom + 17, "text-anchor": "middle" }, text) });
				parts.push(this.times.at(-1).label);
			}
		}
		return parts;
	}

	// start marks the time at which a server started.
	start({ ms, again }, span) {
		const x = margin.left + this.x(ms), bottom = margin.top + this.inner.height;
		if (ms < span.from || ms > span.to) {
			return [];
		}
		const side = x > this.width / 2 ? { x: x - 5, "text-anchor": "end" } : { x: x + 5, "text-anchor": "start" };
		return [
			svg("line", { class: "start", x1: x, x2: x, y1: margin.top, y2: bottom }),
			svg("text", { class: "start", y: margin.top + 11, ...side }, again ? words.restarted : words.started),
		];
	}

	// curve draws a line and, for the first of a linear axis, the area below it.
	curve(points, ink, gapMs) {
		const all = runs(points, gapMs), parts = [];
		if (all.length === 0) {
			return parts;
		}
		if (ink === "first" && !this.log) {
			parts.push(svg("path", { class: "area first", d: all.map((run) => areaPath(run, this.x, this.y, this.inner.height)).join("") }));
		}
		parts.push(svg("path", { class: `stroke ${ink}`, d: all.map((run) => linePath(run, this.x, this.y)).join("") }));
		return parts;
	}

	// mark draws the selection and the crosshair at a sample, if any; the legend has its values.
	mark(samples, index, selected) {
		const parts = [], { width, height } = this.inner, at = index ?? samples.length - 1;
		this.lines.forEach(({ col }, i) => {
			this.values[i].textContent = valueText(this.kind, samples.value(col, this.kind, at));
		});
		if (selected !== null) {
			const from = Math.max(0, this.x(Math.min(...selected))), to = Math.min(width, this.x(Math.max(...selected)));
			parts.push(svg("rect", { class: "selected", x: margin.left + from, y: margin.top, width: Math.max(0, to - from), height }));
		}
		this.clear(0, 0);
		if (index !== null) {
			parts.push(...this.crosshair(samples, index));
		}
		this.cross.replaceChildren(...parts);
		this.tell(samples, at);
	}

	// clear hides the axis labels within so many pixels of the crosshair's own label.
	clear(place, pixels) {
		for (const { x, label } of this.times) {
			const half = 3.5 * label.textContent.length;
			label.setAttribute("visibility", Math.abs(x - place) < pixels + half ? "hidden" : "visible");
		}
	}

	crosshair(samples, index) {
		const ms = samples.ms(index), x = margin.left + this.x(ms), bottom = margin.top + this.inner.height;
		const parts = [svg("line", { class: "hair", x1: x, x2: x, y1: margin.top, y2: bottom })];
		for (const { col, ink } of this.lines) {
			const value = samples.value(col, this.kind, index);
			if (value !== null) {
				parts.push(svg("circle", { class: `dot ${ink}`, cx: x, cy: margin.top + this.y(value), r: 4 }));
			}
		}
		const middle = Math.min(Math.max(x, margin.left + 26), this.width - 34);
		this.clear(middle, 38);
		parts.push(svg("rect", { class: "time", x: middle - 33, y: bottom + 3, width: 66, height: 19, rx: 4 }));
		parts.push(svg("text", { class: "time", x: middle, y: bottom + 17, "text-anchor": "middle" }, timeText(ms)));
		return parts;
	}

	// tell gives the plot the value of a slider, which assistive software reads when the arrow keys move the
	// crosshair.
	tell(samples, index) {
		if (index < 0) {
			return;
		}
		const values = this.lines.map((_, i) => `${this.names[i]} ${this.values[i].textContent}`.trim());
		const attributes = {
			role: "slider", "aria-valuemin": this.span.from, "aria-valuemax": this.span.to, "aria-valuenow": samples.ms(index),
			"aria-valuetext": [timeText(samples.ms(index)), ...values].join(", "),
		};
		for (const [name, value] of Object.entries(attributes)) {
			this.plot.setAttribute(name, value);
		}
	}
}

// drawSpark draws the newest part of a column, without axes.
const drawSpark = (place, samples) => {
	const width = 100, height = 24, to = samples.ms(samples.length - 1);
	const from = Math.max(to - 300_000, Math.min(samples.ms(0), to - leastMs)); // up to five minutes
	const [first, end] = samples.within({ from, to });
	const points = samples.points(place.dataset.col, "count", Math.max(0, first - 1), end); // from before the edge
	const most = Math.max(1, ...points.map((p) => p.value ?? 0));
	const x = (ms) => (width * (ms - from)) / (to - from), y = (value) => height - 1 - ((height - 2) * value) / most;
	const all = runs(points, samples.gapMs);
	place.setAttribute("viewBox", `0 0 ${width} ${height}`);
	place.setAttribute("preserveAspectRatio", "none");
	place.replaceChildren(
		svg("path", { class: "area first", d: all.map((run) => areaPath(run, x, y, height)).join("") }),
		svg("path", { class: "stroke first", d: all.map((run) => linePath(run, x, y)).join("") }));
};
