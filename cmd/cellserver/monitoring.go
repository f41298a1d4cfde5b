package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/metrics"
	"cellserver/internal/observe"
)

func (o *options) defineMonitoring(fs *pflag.FlagSet) {
	fs.Int64Var(&o.thresholds.SlowlogFromUs, "slowlog-log-slower-than", 10_000, "`microseconds` from which a call or batch is recorded in SLOWLOG; negative to disable")
	fs.Int64Var(&o.thresholds.SlowlogMaxLen, "slowlog-max-len", 128, "`number` of entries that SLOWLOG keeps")
	fs.Int64Var(&o.thresholds.LatencyFromMs, "latency-monitor-threshold", 0, "`milliseconds` from which LATENCY records an event; 0 to disable")
	fs.IntVar(&o.topKeysMetric, "top-keys-metric", 0, "`number` of the most requested and of the most limited keys to show in a metric, at most 100; keys may be personal data")
	o.topKeysNames = metrics.PlainNames
	fs.Var(&o.topKeysNames, "top-keys-metric-names", "`how` that metric names keys: plain; hash (16 digits of SHA-256); or cut (the first 8 bytes, keys with the same beginning added up)")
}

// checkMonitoring refuses the values that CONFIG SET would refuse.
func (o *options) checkMonitoring() error {
	t := o.thresholds
	switch {
	case t.SlowlogFromUs < -1:
		return fmt.Errorf("--slowlog-log-slower-than must be -1 or more, got %d", t.SlowlogFromUs)
	case t.SlowlogMaxLen < 0 || t.SlowlogMaxLen > observe.MaxSlowlogLen:
		return fmt.Errorf("--slowlog-max-len must be from 0 to %d, got %d", observe.MaxSlowlogLen, t.SlowlogMaxLen)
	case t.LatencyFromMs < 0:
		return errors.New("--latency-monitor-threshold must not be negative; 0 disables it")
	case o.topKeysMetric < 0 || o.topKeysMetric > metrics.MaxTopKeys:
		return fmt.Errorf("--top-keys-metric must be from 0 to %d, got %d", metrics.MaxTopKeys, o.topKeysMetric)
	}
	return nil
}
