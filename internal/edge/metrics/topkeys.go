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

// topKeys sends the most requested and the most limited keys, up to n each; by default none, as keys may be
// personal data.
func (to sink) topKeys(top func(ranking topkeys.Ranking, n int) []topkeys.Entry, n int, names NameStyle) {
	if n == 0 {
		return
	}
	labels := []string{"kind", "db", "key"}
	rateDesc := desc("top_key_calls_per_second", "Estimated calls per second of the most requested and the most limited keys over about "+
		"the last minute; keys whose estimate is within its error are left out.", labels...)
	errDesc := desc("top_key_calls_per_second_error", "Error of top_key_calls_per_second.", labels...)
	for _, ranking := range []topkeys.Ranking{topkeys.Requested, topkeys.Limited} {
		type series struct{ db, key string }
		rates, errs := map[series]float64{}, map[series]float64{}
		for _, e := range top(ranking, n) {
			s := series{strconv.Itoa(int(e.DB)), names.name(e.Name)}
			rates[s] += e.CallsPerSecond
			errs[s] += e.Error
		}
		for s, rate := range rates {
			to.series(errDesc, prometheus.GaugeValue, errs[s], ranking.String(), s.db, s.key)
			to.series(rateDesc, prometheus.GaugeValue, rate, ranking.String(), s.db, s.key)
		}
	}
}
