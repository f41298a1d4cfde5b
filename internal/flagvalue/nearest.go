package flagvalue

// Nearest returns the name with the fewest edits, unless that is half of it or more; "" for none.
func Nearest(name string, names []string) (nearest string) {
	fewest := (len(name) + 1) / 2
	for _, other := range names {
		if n := edits(name, other); n < fewest {
			nearest, fewest = other, n
		}
	}
	return nearest
}

// edits is the Levenshtein distance of two texts: how many bytes must be inserted, removed or replaced.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // of the part of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			n := diagonal
			if a[i] != b[j] {
				n = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], n
		}
	}
	return row[len(b)]
}
