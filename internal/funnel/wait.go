package funnel

// WaitIn is ThrottleIn for a caller that waits up to maxWaitNs: units are charged at once, beyond the
// capacity, so that no later caller overtakes. Its turn is after waitNs.
func (l Limit) WaitIn(unit Unit, tatNs, nowNs, quantity, maxWaitNs int64) (newTATNs, waitNs int64, r Result) {
	newTATNs, r = l.ThrottleIn(unit, tatNs, nowNs, quantity)
	if !r.Limited || quantity <= 0 || quantity > l.capacity {
		return newTATNs, 0, r
	}
	requestedNs := l.intervalNs * uint64(quantity) // at most toleranceNs
	overNs := Since(nowNs, tatNs) - (l.ToleranceNs() - requestedNs)
	if overNs > uint64(max(maxWaitNs, 0)) {
		return tatNs, 0, r
	}
	newTATNs = After(tatNs, requestedNs)
	r.Limited, r.RetryAfter, r.ResetAfter = false, -1, unit.Of(Since(nowNs, newTATNs))
	return newTATNs, int64(overNs), r
}

// GiveBack takes debitNs off a TAT, down to an empty funnel.
func GiveBack(tatNs, nowNs int64, debitNs uint64) (newTATNs int64) {
	debtNs := Since(nowNs, tatNs)
	return After(nowNs, debtNs-min(debtNs, debitNs))
}
