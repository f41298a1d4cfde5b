package admin

import (
	"errors"
	"strconv"

	"cellserver/internal/decide/observe"
)

// Thresholds are the initial settings of SLOWLOG and LATENCY. The zero Thresholds record nothing.
type Thresholds struct {
	SlowlogFromUs int64 // shortest call in SLOWLOG; negative for none
	SlowlogMaxLen int64
	LatencyFromMs int64 // shortest LATENCY event; 0 for none
}

func (t Thresholds) apply(r *observe.Records) {
	if t.SlowlogMaxLen == 0 {
		t.SlowlogFromUs = -1
	}
	r.Slowness.SetSlowlog(t.SlowlogFromUs)
	r.Slowness.SetLatency(t.LatencyFromMs)
	r.Slowlog.SetMaxLen(t.SlowlogMaxLen)
}

func recordSettings(r *observe.Records) []Setting {
	const most = 1<<63 - 1
	return []Setting{
		intSetting("slowlog-log-slower-than", -1, most, r.Slowness.Slowlog, r.Slowness.SetSlowlog),
		intSetting("slowlog-max-len", 0, observe.MaxSlowlogLen, r.Slowlog.MaxLen, r.Slowlog.SetMaxLen),
		intSetting("latency-monitor-threshold", 0, most, r.Slowness.Latency, r.Slowness.SetLatency),
		Constant("latency-tracking", "yes"),
	}
}

func intSetting(name string, least, most int64, get func() int64, set func(int64)) Setting {
	return Setting{
		Name: name,
		Get:  func() string { return strconv.FormatInt(get(), 10) },
		Set: func(text string) (func(), error) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, errors.New("argument couldn't be parsed into an integer")
			}
			if n < least || n > most {
				return nil, errors.New("argument must be between " + strconv.FormatInt(least, 10) + " and " + strconv.FormatInt(most, 10) + " inclusive")
			}
			return func() { set(n) }, nil
		},
	}
}
