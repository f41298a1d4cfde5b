package session

import (
	"context"

	"cellserver/internal/base/often"
)

// Lines that scripts log in a second, which are written; the others are counted. A line has at most 1 KiB, so no number of
// clients fills a disk, and one client does not displace the lines of the others.
const (
	maxClientLines = 10
	maxScriptLines = 100 // of all clients
)

// writeLogged writes what a client's scripts have logged. It may be called in the background.
func (s *Session) writeLogged(in *inner) {
	e := s.engine
	leftOut := in.leftOut
	for _, line := range in.logged {
		if s.scriptLines == nil {
			s.scriptLines = &often.Rate{}
		}
		nowNs := e.config.Now()
		if !s.scriptLines.Allow(nowNs, maxClientLines) || !e.scriptLines.Allow(nowNs, maxScriptLines) {
			leftOut++
			continue
		}
		attrs := []any{"client", s.client.Addr()}
		if n := e.linesLeftOut.Swap(0); n > 0 {
			attrs = append(attrs, "left_out_before", n)
		}
		e.config.Log.Log(context.Background(), line.level, line.message, attrs...)
	}
	if leftOut > 0 {
		e.linesLeftOut.Add(int64(leftOut))
		e.config.Records.LeaveOutScriptLines(leftOut)
	}
}
