package report

// Section is what a program that follows Sentinel prints for each further line of its input: the calls since
// the line before, on the key that this line had.
type Section struct {
	Library string `json:"library"`
	Version string `json:"version"`
	Key     string `json:"key"`

	OK      int `json:"ok"`      // calls with a reply that is not an error
	Allowed int `json:"allowed"` // of these
	Refused int `json:"refused"` // by READONLY and the like: not charged
	Unsent  int `json:"unsent"`  // without a connection: not charged
	Unknown int `json:"unknown"` // may have been charged

	LongestMs float64 `json:"longest_ms"` // time without a success, also from before the section
	SinceMs   float64 `json:"since_ms"`   // time since the last success

	Errors map[string]int `json:"errors"` // by their text
}

// Add adds a later section.
func (s *Section) Add(later Section) {
	s.Library, s.Version, s.Key = later.Library, later.Version, later.Key
	s.OK += later.OK
	s.Allowed += later.Allowed
	s.Refused += later.Refused
	s.Unsent += later.Unsent
	s.Unknown += later.Unknown
	s.LongestMs, s.SinceMs = max(s.LongestMs, later.LongestMs), later.SinceMs
	for text, n := range later.Errors {
		if s.Errors == nil {
			s.Errors = map[string]int{}
		}
		s.Errors[text] += n
	}
}
