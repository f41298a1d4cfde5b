// All charts share one span of time, one crosshair and one selection.
class Board {
	// The toolbar has the ranges, radio buttons in milliseconds, and the button that undoes a zoom.
	constructor(definitions, samples, toolbar) {
		this.samples = samples;
		this.charts = definitions.map((d) => new Chart(d, document.getElementById(`chart-${d.id}`)));
		this.ranges = toolbar.querySelectorAll("input");
		this.whole = toolbar.querySelector("button");
		this.longestMs = Number([...this.ranges].find((input) => input.checked)?.value ?? historyMs);
		this.zoomed = null; // a span of time, or null
		this.cursor = null; // {ms} of a sample, or null; with the share of the width under the pointer
		this.selected = null; // the two ends of a selection, or null
		for (const input of this.ranges) {
			input.addEventListener("change", () => {
				this.longestMs = Number(input.value);
				this.zoom(null);
			});
		}
		this.whole.addEventListener("click", () => this.zoom(null));
		const resized = new ResizeObserver(() => this.resize());
		for (const chart of this.charts) {
			resized.observe(chart.plot);
			this.listen(chart);
		}
	}

	// span returns what the charts show: the zoomed span while any of it is left, else the newest samples
	// within the range.
	span() {
		const to = this.samples.length > 0 ? this.samples.ms(this.samples.length - 1) : Date.now();
		if (this.zoomed !== null && this.samples.length > 0 && this.zoomed.to > this.samples.ms(0)) {
			return this.zoomed;
		}
		const first = this.samples.length > 0 ? this.samples.ms(0) : to, start = this.samples.starts[0]?.ms ?? first;
		const oldest = Math.min(to - leastMs, first, first - start < leastMs ? start : first);
		return { from: Math.max(to - this.longestMs, oldest), to };
	}

	resize() {
		for (const chart of this.charts) {
			chart.resize();
		}
		this.draw();
	}

	draw() {
		const span = this.span();
		this.zoomed = span === this.zoomed ? span : null;
		this.whole.hidden = this.zoomed === null;
		for (const input of this.ranges) {
			input.checked = this.zoomed === null && Number(input.value) === this.longestMs;
		}
		for (const chart of this.charts) {
			chart.draw(this.samples, span);
		}
		if (this.cursor?.share !== undefined) { // the pointer stays while the time below it moves
			this.cursor.ms = span.from + this.cursor.share * (span.to - span.from);
		}
		this.mark();
	}

	mark() {
		if (this.samples.length === 0) {
			return; // the legends show the server's values
		}
		const index = this.cursor === null ? null : this.samples.nearest(this.cursor.ms, this.span());
		for (const chart of this.charts) {
			if (chart.axis !== undefined) {
				chart.mark(this.samples, index, this.selected);
			}
		}
	}

	zoom(span) {
		this.zoomed = span;
		this.selected = null;
		this.draw();
	}

	// zoomToSelected zooms unless the selection is so short that it was a click.
	zoomToSelected() {
		const from = Math.min(...this.selected), to = Math.max(...this.selected);
		this.zoom(to - from >= 2 * Math.min(this.samples.gapMs, 5000) ? { from, to } : this.zoomed);
	}

	listen(chart) {
		const { plot } = chart;
		plot.addEventListener("pointermove", (event) => this.point(chart, event));
		plot.addEventListener("pointerdown", (event) => this.press(chart, event));
		plot.addEventListener("pointerup", () => this.release());
		plot.addEventListener("pointercancel", () => this.leave());
		plot.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.leave()); // a lifted finger keeps the values
		plot.addEventListener("keydown", (event) => this.key(event));
		plot.addEventListener("blur", () => this.leave());
	}

	point(chart, event) {
		const left = chart.plot.getBoundingClientRect().left + margin.left;
		const share = Math.min(1, Math.max(0, (event.clientX - left) / chart.inner.width)), { from, to } = this.span();
		this.cursor = { share, ms: from + share * (to - from) };
		if (this.selected !== null && chart.plot.hasPointerCapture(event.pointerId)) {
			this.selected = [this.selected[0], this.cursor.ms];
		}
		this.mark();
	}

	// press begins a selection with a mouse or pen; a finger moves the crosshair.
	press(chart, event) {
		event.preventDefault(); // selects no text
		chart.plot.focus({ preventScroll: true });
		this.point(chart, event);
		if (event.button !== 0 || event.pointerType === "touch") {
			return;
		}
		chart.plot.setPointerCapture(event.pointerId);
		this.selected = [this.cursor.ms, this.cursor.ms];
	}

	release() {
		if (this.selected !== null) {
			this.zoomToSelected();
		}
	}

	leave() {
		this.cursor = this.selected = null;
		this.mark();
	}

	// key moves the crosshair by samples. Enter begins a selection, then zooms to it.
	key(event) {
		const [first, end] = this.samples.within(this.span()), by = event.shiftKey ? 10 : 1;
		const at = this.cursor === null ? null : this.samples.nearest(this.cursor.ms, this.span());
		const to = { ArrowLeft: (at ?? end) - by, ArrowRight: (at ?? first - 1) + by, Home: first, End: end - 1 }[event.key];
		if (to !== undefined && first < end) {
			this.cursor = { ms: this.samples.ms(Math.min(end - 1, Math.max(first, to))) };
			this.selected = this.selected && [this.selected[0], this.cursor.ms];
			this.mark();
		} else if (event.key === "Enter" && this.selected !== null) {
			this.zoomToSelected();
		} else if (event.key === "Enter" && this.cursor !== null) {
			this.selected = [this.cursor.ms, this.cursor.ms];
			this.mark();
		} else if (event.key === "Escape") {
			if (this.cursor === null || this.selected === null) {
				this.zoomed = null;
			}
			this.cursor = this.selected = null;
			this.draw();
		} else {
			return;
		}
		event.preventDefault();
	}
}
