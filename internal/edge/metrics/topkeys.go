package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/resp"
)

// NameStyle is the form of key names in labels.
type NameStyle string

// The name styles:
const (
	PlainNames  NameStyle = "plain"
	HashedNames NameStyle = "hash" // first 16 hex digits of SHA-256, which hide the key but let a guess be verified
	CutNames    NameStyle = "cut"  // first characters; keys that share them are summed
)

const (
	// MaxTopKeys bounds the series of each ranking.
	MaxTopKeys = 100

	cutNameBytes  = 8
	hashNameBytes = 8 // in hexadecimal, two digits each
)

// name returns a key as a valid UTF-8 label value.
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

// topKeysCollector collects the most requested and the most limited keys, up to n each; with 0 none, as keys
// may be personal data.
type topKeysCollector struct {
	top   func(ranking topkeys.Ranking, n int) []topkeys.Entry
	n     int
	names NameStyle
	rate  *prometheus.Desc
	err   *prometheus.Desc // error of the rate
}

func newTopKeysCollector(top func(ranking topkeys.Ranking, n int) []topkeys.Entry, n int, names NameStyle) *topKeysCollector {
	labels := []string{"kind", "db", "key"}
	return &topKeysCollector{
		top: top, n: n, names: names,
		rate: desc("top_key_calls_per_second", "Estimated calls per second of the most requested and the most limited keys over about "+
			"the last minute; keys whose estimate is within its error are left out.", labels...),
		err: desc("top_key_calls_per_second_error", "Error of top_key_calls_per_second.", labels...),
	}
}

func (t *topKeysCollector) Describe(ch chan<- *prometheus.Desc) { ch <- t.rate; ch <- t.err }

func (t *topKeysCollector) Collect(ch chan<- prometheus.Metric) {
	if t.n == 0 {
		return
	}
	for _, ranking := range []topkeys.Ranking{topkeys.Requested, topkeys.Limited} {
		type series struct{ db, key string }
		rates, errs := map[series]float64{}, map[series]float64{}
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
