package dashboard

import "cellserver/internal/decide/histogram"

// latencies holds percentiles in nanoseconds; ok is false if there was no call.
type latencies struct {
	p50, p99, p999 float64
	ok             bool
}

func percentiles(of histogram.Snapshot) latencies {
	at := func(share float64) float64 { return float64(of.Quantile(share)) }
	return latencies{p50: at(0.5), p99: at(0.99), p999: at(0.999), ok: of.Count > 0}
}
