// Package nearest finds the word that somebody meant to write. It is constant.
package nearest

import "slices"

const maxBytes = 64 // of words compared

// Word returns the word that a wrong one becomes by the fewest edits, fewer than half of its length; else
// "". Words of more than 64 bytes are like no other, so a call takes a bounded time for each word.
func Word(wrong string, words []string) (nearest string) {
	fewest := (len(wrong) + 1) / 2
	for _, word := range words {
		if n := edits(wrong, word, fewest); n < fewest {
			nearest, fewest = word, n
		}
	}
	return nearest
}

// edits returns the optimal string alignment distance if it is less than most, or else most: inserted,
// removed, replaced or swapped bytes, none of them twice.
func edits(a, b string, most int) int {
	if max(len(a), len(b)) > maxBytes || max(len(a)-len(b), len(b)-len(a)) >= most {
		return most
	}
	// Distances to each beginning of b: of the current part of a, without its last byte, and without its
	// last two.
	var rows [3][maxBytes + 1]int
	row, above, aboveThat := &rows[0], &rows[1], &rows[2]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		row, above, aboveThat = aboveThat, row, above
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], aboveThat[j-1]+1)
			}
		}
		if slices.Min(row[:len(b)+1]) > most { // a swap looks back two rows, so as many steps below
			return most
		}
	}
	return min(row[len(b)], most)
}
