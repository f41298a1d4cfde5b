package command

import (
	"errors"
	"strconv"
	"sync/atomic"
)

// Watching is what operators see of the server at work, as it is at the start. The zero Watching keeps nothing.
type Watching struct {
	SlowlogFromUs int64 // what takes so long goes into SLOWLOG; never with a negative one
	SlowlogMaxLen int64
	LatencyFromMs int64 // what takes so long is a LATENCY event; never with 0
}

func (e *Engine) watch(w Watching) {
	if w.SlowlogMaxLen == 0 {
		w.SlowlogFromUs = -1
	}
	e.slow.logFromUs.Store(w.SlowlogFromUs)
	e.slow.latencyFromMs.Store(w.LatencyFromMs)
	e.slowlog.maxLen.Store(w.SlowlogMaxLen)
	e.slow.weigh()
	e.config.Settings = append(e.config.Settings[:len(e.config.Settings):len(e.config.Settings)],
		e.watchSetting("slowlog-log-slower-than", &e.slow.logFromUs, -1, 1<<63-1),
		e.watchSetting("slowlog-max-len", &e.slowlog.maxLen, 0, MaxSlowlogLen),
		e.watchSetting("latency-monitor-threshold", &e.slow.latencyFromMs, 0, 1<<63-1),
		Constant("latency-tracking", "yes"),
	)
}

func (e *Engine) watchSetting(name string, value *atomic.Int64, least, most int64) Setting {
	return Setting{
		Name: name,
		Get:  func() string { return strconv.FormatInt(value.Load(), 10) },
		Set: func(text string) (func(), error) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, errors.New("argument couldn't be parsed into an integer")
			}
			if n < least || n > most {
				return nil, errors.New("argument must be between " + strconv.FormatInt(least, 10) + " and " + strconv.FormatInt(most, 10) + " inclusive")
			}
			return func() {
				value.Store(n)
				e.slow.weigh()
			}, nil
		},
	}
}
