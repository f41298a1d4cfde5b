package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/metrics"
	"cellserver/internal/observe"
)

func (o *options) defineWatching(fs *pflag.FlagSet) {
	fs.Int64Var(&o.thresholds.SlowlogFromUs, "slowlog-log-slower-than", 10_000, "`microseconds` from which on a call or batch goes into SLOWLOG; negative for none")
	fs.Int64Var(&o.thresholds.SlowlogMaxLen, "slowlog-max-len", 128, "entries that SLOWLOG keeps")
	fs.Int64Var(&o.thresholds.LatencyFromMs, "latency-monitor-threshold", 0, "`milliseconds` from which on LATENCY keeps an event; 0 for none")
	fs.IntVar(&o.topKeysMetric, "top-keys-metric", 0, "`number` of keys asked most, and of keys denied most, to show in a metric, 100 at most; they may be personal data")
	o.topKeysNames = metrics.PlainNames
	fs.Var(&o.topKeysNames, "top-keys-metric-names", "`how` that metric names keys: plain; hash, 16 digits of SHA-256; cut, the first 8 bytes, keys that begin alike added up")
}

// checkWatching refuses what CONFIG SET would refuse.
func (o *options) checkWatching() error {
	w := o.thresholds
	switch {
	case w.SlowlogFromUs < -1:
		return fmt.Errorf("--slowlog-log-slower-than must be -1 or more, got %d", w.SlowlogFromUs)
	case w.SlowlogMaxLen < 0 || w.SlowlogMaxLen > observe.MaxSlowlogLen:
		return fmt.Errorf("--slowlog-max-len must be from 0 to %d, got %d", observe.MaxSlowlogLen, w.SlowlogMaxLen)
	case w.LatencyFromMs < 0:
		return errors.New("--latency-monitor-threshold must not be negative; 0 turns it off")
	case o.topKeysMetric < 0 || o.topKeysMetric > metrics.MaxTopKeys:
		return fmt.Errorf("--top-keys-metric must be from 0 to %d, got %d", metrics.MaxTopKeys, o.topKeysMetric)
	}
	return nil
}
