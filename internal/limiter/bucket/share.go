package bucket

// Share returns the limit of one of those who divide it up: it holds a share of the capacity, which is above 0 and at most 1, but
// one unit at the least if it held any.
func (l Limit) Share(share float64) Limit {
	if l.capacity > 0 && share < 1 {
		l.capacity = max(1, int64(float64(l.capacity)*share))
	}
	return l
}
