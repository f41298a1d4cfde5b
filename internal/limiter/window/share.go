package window

// Share returns the limit of one of those who divide it up: it allows a share of the units, which is above 0 and at most 1, but one at
// the least if it allowed any.
func (l Limit) Share(share float64) Limit {
	if l.maxCount > 0 && share < 1 {
		l.maxCount = max(1, int64(float64(l.maxCount)*share))
	}
	return l
}
