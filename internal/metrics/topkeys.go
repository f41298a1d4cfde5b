package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/resp"
	"cellserver/internal/topkeys"
)

// NameStyle says how keys are named in labels. It is a flag's value.
type NameStyle string

// The styles:
const (
	PlainNames  NameStyle = "plain"
	HashedNames NameStyle = "hash" // the first 16 digits of SHA-256: a look does not tell the key, but a guess can be tested
	CutNames    NameStyle = "cut"  // the first characters; keys that begin alike are added up
)

// String implements pflag.Value.
func (s *NameStyle) String() string { return string(*s) }

// Type implements pflag.Value.
func (s *NameStyle) Type() string { return "style" }

// Set implements pflag.Value.
func (s *NameStyle) Set(text string) error {
	switch style := NameStyle(text); style {
	case PlainNames, HashedNames, CutNames:
		*s = style
		return nil
	}
	return fmt.Errorf("must be plain, hash or cut, got %q", text)
}

const (
	// MaxTopKeys bounds the series of each kind.
	MaxTopKeys = 100

	cutNameBytes  = 8
	hashNameBytes = 8 // twice as many digits
)

// name returns a key as a label, which must be text.
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

// topCollector collects the keys that are asked and denied most.
type topCollector struct {
	top   func(kind topkeys.Kind, n int) []topkeys.Entry
	n     int
	names NameStyle
	rate  *prometheus.Desc
}

// newTopCollector returns a collector of up to n keys of each kind. With 0 it collects nothing: keys may be personal data.
func newTopCollector(top func(kind topkeys.Kind, n int) []topkeys.Entry, n int, names NameStyle) *topCollector {
	return &topCollector{top: top, n: n, names: names, rate: prometheus.NewDesc("cellserver_top_key_calls_per_second",
		"Estimated calls per second of the keys that are asked or denied most, over about the last minute.", []string{"kind", "db", "key"}, nil)}
}

// Describe implements prometheus.Collector.
func (t *topCollector) Describe(ch chan<- *prometheus.Desc) { ch <- t.rate }

// Collect implements prometheus.Collector.
func (t *topCollector) Collect(ch chan<- prometheus.Metric) {
	if t.n == 0 {
		return
	}
	for _, kind := range []topkeys.Kind{topkeys.Asked, topkeys.Denied} {
		type series struct{ db, key string }
		rates := map[series]float64{} // keys may have one name
		for _, e := range t.top(kind, t.n) {
			rates[series{strconv.Itoa(int(e.DB)), t.names.name(e.Name)}] += e.CallsPerSecond
		}
		for s, rate := range rates {
			ch <- prometheus.MustNewConstMetric(t.rate, prometheus.GaugeValue, rate, kind.String(), s.db, s.key)
		}
	}
}
