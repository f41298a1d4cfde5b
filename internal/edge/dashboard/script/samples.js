// The history: columns of samples, to which each answer of the server adds.
const historyMs = 15 * 60_000;

// undelta turns differences into values; null is no value and is skipped.
const undelta = (differences) => {
	let last = 0;
	return differences.map((difference) => (difference === null ? null : (last += difference)));
};

class Samples {
	columns = { t: [] };
	starts = []; // of servers: {ms, again} with whether there are samples from before
	boot = "";
	gapMs = Infinity; // samples further apart are not joined

	get length() {
		return this.columns.t.length;
	}

	// add adds the samples of an answer, or replaces the history with a whole one. The samples from before a
	// restart stay, as far as the clock went on.
	add({ points, whole, stepMs, boot, startMs }) {
		this.gapMs = 2.5 * stepMs;
		const restarted = whole && this.boot !== boot && this.boot !== "";
		this.boot = boot;
		if (restarted) {
			this.restart(startMs, points.t?.[0] ?? Infinity);
		} else if (whole) {
			this.columns = { t: [] };
			this.starts = [{ ms: startMs, again: false }];
		}
		const before = this.length, added = points.t?.length ?? 0;
		for (const name of new Set([...Object.keys(points), ...Object.keys(this.columns)])) {
			const old = this.columns[name] ?? Array(before).fill(null);
			this.columns[name] = [...old, ...undelta(points[name] ?? Array(added).fill(null))];
		}
		const tooOld = this.columns.t.findIndex((ms) => ms > this.columns.t.at(-1) - historyMs);
		if (tooOld > 0) {
			for (const column of Object.values(this.columns)) {
				column.splice(0, tooOld);
			}
		}
	}

	// restart ends the curves at a restart by a sample without values.
	restart(startMs, firstMs) {
		const ms = Math.min(startMs, firstMs - 1), end = this.columns.t.findIndex((t) => t >= ms);
		const count = end < 0 ? this.length : end;
		for (const [name, column] of Object.entries(this.columns)) {
			this.columns[name] = [...column.slice(0, count), name === "t" ? ms : null];
		}
		this.starts = [...this.starts.filter((start) => start.ms < ms), { ms, again: count > 0 }];
	}

	ms(index) {
		return this.columns.t[index];
	}

	value(column, kind, index) {
		const value = this.columns[column]?.[index] ?? null;
		return value === null ? null : value / perUnit[kind];
	}

	points(column, kind, first, end) {
		const points = [];
		for (let i = first; i < Math.min(end, this.length); i++) {
			points.push({ ms: this.ms(i), value: this.value(column, kind, i) });
		}
		return points;
	}

	// within returns the first sample of a span and the one after its last.
	within({ from, to }) {
		const t = this.columns.t, first = t.findIndex((ms) => ms >= from);
		return first < 0 ? [t.length, t.length] : [first, t.findLastIndex((ms) => ms <= to) + 1];
	}

	// nearest returns the sample nearest to a time, or null if the span has none.
	nearest(ms, span) {
		const [first, end] = this.within(span);
		let best = null;
		for (let i = first; i < end; i++) {
			if (best === null || Math.abs(this.ms(i) - ms) <= Math.abs(this.ms(best) - ms)) {
				best = i;
			}
		}
		return best;
	}
}
