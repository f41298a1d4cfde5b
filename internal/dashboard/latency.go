package dashboard

// Histogram counts durations since the server's start: Counts[i] of up to BoundsNs[i], but more than the bound
// before, and one count more for those beyond the last bound. Who gets one must not change it any more.
type Histogram struct {
	BoundsNs []int64 // ascending
	Counts   []uint64
}

// latencies is percentiles in nanoseconds, if there was anything to measure.
type latencies struct {
	p50, p99, p999 float64
	ok             bool
}

// since returns the percentiles of what was counted after an earlier histogram.
func (h Histogram) since(before Histogram) latencies {
	counts := make([]uint64, len(h.Counts))
	total := uint64(0)
	for i, n := range h.Counts {
		if i < len(before.Counts) {
			n = since(n, before.Counts[i])
		}
		counts[i] = n
		total += n
	}
	if total == 0 || len(h.BoundsNs) == 0 {
		return latencies{}
	}
	at := func(share float64) float64 { return h.percentile(counts, share*float64(total)) }
	return latencies{p50: at(0.5), p99: at(0.99), p999: at(0.999), ok: true}
}

// percentile is the duration that rank of the counts are below, taken as evenly spread inside of a bucket. Beyond the
// last bound nothing is known, and the bound is returned.
func (h Histogram) percentile(counts []uint64, rank float64) float64 {
	below := 0.0
	lowNs := 0.0
	for i, highNs := range h.BoundsNs {
		n := float64(counts[i])
		if n > 0 && below+n >= rank {
			return lowNs + (float64(highNs)-lowNs)*(rank-below)/n
		}
		below += n
		lowNs = float64(highNs)
	}
	return lowNs
}
