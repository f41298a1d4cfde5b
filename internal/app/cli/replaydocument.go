package cli

import (
	"time"

	"cellserver/internal/migrate/replay"
)

// summaryDocument is a trace's summary in JSON.
type summaryDocument struct {
	Rows         int64        `json:"rows"`
	Allowed      int64        `json:"allowed"`
	Limited      int64        `json:"limited"`
	LimitedShare float64      `json:"limited_share"`
	First        *time.Time   `json:"first"` // nil without rows, like Last
	Last         *time.Time   `json:"last"`
	TimeSpanMs   int64        `json:"time_span_ms"`
	SkippedRows  int64        `json:"skipped_rows"`
	SkippedCalls int64        `json:"skipped_calls"`
	MostLimited  []limitedKey `json:"most_limited"`
}

type limitedKey struct {
	documentKey
	Limited       float64 `json:"limited"`
	AtMostTooHigh float64 `json:"at_most_too_high"`
}

func summaryDocumentOf(s *replay.Summary, top int) summaryDocument {
	d := summaryDocument{
		Rows: s.Allowed + s.Limited, Allowed: s.Allowed, Limited: s.Limited, SkippedRows: s.Skipped.Rows, SkippedCalls: s.Skipped.Calls,
		MostLimited: []limitedKey{},
	}
	if d.Rows > 0 {
		first, last := time.Unix(0, s.FirstNs).UTC(), time.Unix(0, s.LastNs).UTC()
		d.LimitedShare, d.First, d.Last, d.TimeSpanMs = s.LimitedShare(), &first, &last, last.Sub(first).Milliseconds()
	}
	for _, c := range s.MostLimited(top) {
		d.MostLimited = append(d.MostLimited, limitedKey{documentKeyOf(c.Key), c.Count, c.Overcount})
	}
	return d
}
