package funnel

// Outlook is the future of a funnel without further calls, more precise than a Result.
type Outlook struct {
	Level   float64 // units now; above the capacity if a larger limit filled it
	FreeNs  uint64  // until one unit is available
	EmptyNs uint64  // until it is empty
}

// Outlook returns the outlook of a funnel with the state tatNs. The limit must be from NewLimit.
func (l Limit) Outlook(tatNs, nowNs int64) Outlook {
	debtNs := Since(nowNs, tatNs)
	return Outlook{
		Level:   float64(debtNs) / float64(l.intervalNs),
		FreeNs:  debtNs - min(debtNs, l.ToleranceNs()-l.intervalNs),
		EmptyNs: debtNs,
	}
}
