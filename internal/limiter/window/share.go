package window

// Share returns a share, above 0 and at most 1, of the units, but at least one if it allowed any.
func (l Limit) Share(share float64) Limit {
	if l.maxCount > 0 && share < 1 {
		l.maxCount = max(1, int64(float64(l.maxCount)*share))
	}
	return l
}
