package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/resp"
)

// NameStyle says how keys are named in labels.
type NameStyle string

// The name styles:
const (
	PlainNames  NameStyle = "plain"
	HashedNames NameStyle = "hash" // the first 16 digits of SHA-256: it hides the key, but a guess can be verified
	CutNames    NameStyle = "cut"  // the first characters; keys that share them are added up
)

const (
	// MaxTopKeys bounds the series of each ranking.
	MaxTopKeys = 100

	cutNameBytes  = 8
	hashNameBytes = 8 // in hexadecimal, two digits each
)

// name returns a key as a label value, which must be UTF-8.
func (s NameStyle) name(key string) string {
	switch {
	case s == HashedNames:
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:hashNameBytes])
	case s == CutNames && len(key) > cutNameBytes:
		return resp.PrintableN([]byte(key), cutNameBytes) + "..."
	}
	return resp.PrintableN([]byte(key), 4*topkeys.MaxNameBytes)
}

// topKeysCollector collects the most requested and the most limited keys.
type topKeysCollector struct {
	top   func(ranking topkeys.Ranking, n int) []topkeys.Entry
	n     int
	names NameStyle
	rate  *prometheus.Desc
	err   *prometheus.Desc // the rate's error
}

// newTopKeysCollector returns a collector of up to n keys of each ranking. With 0 it collects nothing: keys may be
// personal data.
func newTopKeysCollector(top func(ranking topkeys.Ranking, n int) []topkeys.Entry, n int, names NameStyle) *topKeysCollector {
	labels := []string{"kind", "db", "key"}
	return &topKeysCollector{
		top: top, n: n, names: names,
		rate: desc("top_key_calls_per_second", "Estimated calls per second of the most requested and the most limited keys, over about "+
			"the last minute; only of keys that exceed their error clearly.", labels...),
		err: desc("top_key_calls_per_second_error", "The error of the estimates of top_key_calls_per_second.", labels...),
	}
}

// Describe implements prometheus.Collector.
func (t *topKeysCollector) Describe(ch chan<- *prometheus.Desc) { ch <- t.rate; ch <- t.err }

// Collect implements prometheus.Collector.
func (t *topKeysCollector) Collect(ch chan<- prometheus.Metric) {
	if t.n == 0 {
		return
	}
	for _, ranking := range []topkeys.Ranking{topkeys.Requested, topkeys.Limited} {
		type series struct{ db, key string }
		rates, errs := map[series]float64{}, map[series]float64{} // several keys may share a label
		for _, e := range t.top(ranking, t.n) {
			s := series{strconv.Itoa(int(e.DB)), t.names.name(e.Name)}
			rates[s] += e.CallsPerSecond
			errs[s] += e.Error
		}
		for s, rate := range rates {
			ch <- prometheus.MustNewConstMetric(t.err, prometheus.GaugeValue, errs[s], ranking.String(), s.db, s.key)
			ch <- prometheus.MustNewConstMetric(t.rate, prometheus.GaugeValue, rate, ranking.String(), s.db, s.key)
		}
	}
}
