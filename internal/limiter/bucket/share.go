package bucket

// Share returns a share, above 0 and at most 1, of the capacity, but at least one unit if it had any.
func (l Limit) Share(share float64) Limit {
	if l.capacity > 0 && share < 1 {
		l.capacity = max(1, int64(float64(l.capacity)*share))
	}
	return l
}
