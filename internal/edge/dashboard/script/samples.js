// The history: columns of samples, to which each answer of the server adds.
const historyMs = 15 * 60_000;

// undelta turns differences into values; null is no value and is skipped.
const undelta = (differences) => {
	let last = 0;
	return differences.map((difference) => (difference === null ? null : (last += difference)));
};

class Samples {
	columns = { t: [] };
	gapMs = Infinity; // samples further apart are not joined

	get length() {
		return this.columns.t.length;
	}

	// add adds the samples of an answer, or replaces the history with a whole one.
	add({ points, whole, stepMs }) {
		this.gapMs = 2.5 * stepMs;
		const before = whole ? 0 : this.length, added = points.t?.length ?? 0;
		const columns = {};
		for (const [name, differences] of Object.entries(points)) {
			const old = whole ? [] : (this.columns[name] ?? Array(before).fill(null));
			columns[name] = [...old, ...undelta(differences)];
		}
		if (added > 0 || whole) {
			this.columns = { t: [], ...columns };
		}
		const tooOld = this.columns.t.findIndex((ms) => ms > this.columns.t.at(-1) - historyMs);
		if (tooOld > 0) {
			for (const column of Object.values(this.columns)) {
				column.splice(0, tooOld);
			}
		}
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
