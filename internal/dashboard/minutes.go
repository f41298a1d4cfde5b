package dashboard

import "time"

// minuteView is a row of the table: a minute, with the mean of its decisions and the highest of all else.
type minuteView struct {
	Ago                                                  int // minutes before now at which it began
	Allowed, Denied, P50, P99, Connections, Keys, Memory string
}

// minuteViews returns the minutes, the newest first.
func minuteViews(points []point) []minuteView {
	var views []minuteView
	for ago, end := 1, len(points); end > 0; ago++ {
		start := end
		limitNs := points[len(points)-1].atNs - int64(ago)*int64(time.Minute)
		for start > 0 && points[start-1].atNs > limitNs {
			start--
		}
		if start < end { // not a minute without samples, as when the process was stopped
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
		sum.denied += p.denied
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
		Denied:      rate.text(sum.denied / n),
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
