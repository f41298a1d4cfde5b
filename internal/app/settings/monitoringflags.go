package settings

import (
	"math"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/decide/observe"
	"cellserver/internal/edge/metrics"
)

func (o *Options) defineMonitoring(fs *pflag.FlagSet) {
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogFromUs, "slowlog-log-slower-than", 10_000, -1, math.MaxInt64, "`microseconds` from which SLOWLOG records a call or batch; negative to disable")
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogMaxLen, "slowlog-max-len", 128, 0, observe.MaxSlowlogLen, "`number` of entries that SLOWLOG keeps")
	flagvalue.NumberVar(fs, &o.Thresholds.LatencyFromMs, "latency-monitor-threshold", 0, 0, math.MaxInt64, "`milliseconds` from which LATENCY records an event; 0 to disable")
	flagvalue.NumberVar(fs, &o.TopKeysMetric, "top-keys-metric", 0, 0, metrics.MaxTopKeys, "`number` of the most requested and the most limited keys in a metric, at most 100; keys may be personal data")
	flagvalue.ChoiceVar(fs, (*string)(&o.TopKeysNames), "top-keys-metric-names", string(metrics.PlainNames), "`style` of keys in that metric: plain; hash (16 digits of SHA-256); or cut (the first 8 bytes, summing keys with the same start)",
		string(metrics.PlainNames), string(metrics.HashedNames), string(metrics.CutNames))
}
