package settings

import (
	"math"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/decide/observe"
	"cellserver/internal/edge/metrics"
)

func (o *Options) defineMonitoring(fs *pflag.FlagSet) {
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogFromUs, "slowlog-log-slower-than", 10_000, -1, math.MaxInt64, "`microseconds` from which a call or batch is recorded in SLOWLOG; negative to disable")
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogMaxLen, "slowlog-max-len", 128, 0, observe.MaxSlowlogLen, "`number` of entries that SLOWLOG keeps")
	flagvalue.NumberVar(fs, &o.Thresholds.LatencyFromMs, "latency-monitor-threshold", 0, 0, math.MaxInt64, "`milliseconds` from which LATENCY records an event; 0 to disable")
	flagvalue.NumberVar(fs, &o.TopKeysMetric, "top-keys-metric", 0, 0, metrics.MaxTopKeys, "`number` of the most requested and of the most limited keys to show in a metric, at most 100; keys may be personal data")
	flagvalue.ChoiceVar(fs, (*string)(&o.TopKeysNames), "top-keys-metric-names", string(metrics.PlainNames), "`how` that metric names keys: plain; hash (16 digits of SHA-256); or cut (the first 8 bytes, keys with the same beginning added up)",
		string(metrics.PlainNames), string(metrics.HashedNames), string(metrics.CutNames))
}
