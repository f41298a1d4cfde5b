package dashboard

import "time"

// minuteView is a row of the table: a minute with the mean of its decisions and the maximum of everything else.
type minuteView struct {
	Ago                                                   int // minutes before now at which it started
	Allowed, Limited, P50, P99, Connections, Keys, Memory string
}

// newMinuteViews returns the minutes, newest first.
func newMinuteViews(points []point) []minuteView {
	var views []minuteView
	for ago, end := 1, len(points); end > 0; ago++ {
		start := end
		limitNs := points[len(points)-1].atNs - int64(ago)*int64(time.Minute)
		for start > 0 && points[start-1].atNs > limitNs {
			start--
		}
		if start < end { // a minute has no samples if the process was suspended
			views = append(views, summarize(points[start:end], ago))
		}
		end = start
	}
	return views
}

func summarize(points []point, ago int) minuteView {
	var sum, most point
	for i := range points {
		p := &points[i]
		sum.allowed += p.allowed
		sum.limited += p.limited
		most.connections = max(most.connections, p.connections)
		most.keys = max(most.keys, p.keys)
		most.memoryBytes = max(most.memoryBytes, p.memoryBytes)
		most.latency.p50 = max(most.latency.p50, p.latency.p50)
		most.latency.p99 = max(most.latency.p99, p.latency.p99)
		most.latency.ok = most.latency.ok || p.latency.ok
	}
	n := float64(len(points))
	v := minuteView{
		Ago:         ago,
		Allowed:     rate.text(sum.allowed / n),
		Limited:     rate.text(sum.limited / n),
		P50:         "–",
		P99:         "–",
		Connections: count.text(float64(most.connections)),
		Keys:        count.text(float64(most.keys)),
		Memory:      byteCount.text(float64(most.memoryBytes)),
	}
	if most.latency.ok {
		v.P50, v.P99 = durationNs.text(most.latency.p50), durationNs.text(most.latency.p99)
	}
	return v
}
