package store

// Under returns the units of a limit by day.
func (b *Book) Under(limit string) Spends {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(Spends, len(b.limits[limit]))
	for day, units := range b.limits[limit] {
		all[SpentAt{limit, day}] = units
	}
	return all
}
