package report

import "fmt"

// Goal is a bound that was set in advance, and the measured value.
type Goal struct {
	Scenario string  `json:"scenario"`
	Text     string  `json:"text"`
	Least    bool    `json:"least"` // whether the bound is a minimum instead of a maximum
	Bound    float64 `json:"bound"`
	Slack    float64 `json:"slack"` // share of the bound by which it may be exceeded without counting as missed
	Got      Spread  `json:"got"`
	Why      string  `json:"why,omitempty"` // why it was not measured
}

// AtMost returns a goal whose bound is a maximum of the median of values.
func AtMost(text string, bound float64, values []float64) Goal {
	return Goal{Text: text, Bound: bound, Got: NewSpread(values)}
}

// AtLeast returns a goal whose bound is a minimum of the median of values.
func AtLeast(text string, bound float64, values []float64) Goal {
	return Goal{Text: text, Bound: bound, Got: NewSpread(values), Least: true}
}

// The outcomes of a goal.
const (
	Met         = "met"
	Missed      = "missed"
	NotMeasured = "not measured"
)

// Outcome returns Met, Missed or NotMeasured.
func (g Goal) Outcome() string {
	switch {
	case g.Why != "":
		return NotMeasured
	case g.Least && g.Got.Median < g.Bound*(1-g.Slack), !g.Least && g.Got.Median > g.Bound*(1+g.Slack):
		return Missed
	}
	return Met
}

// Wanted returns the bound as text.
func (g Goal) Wanted() string {
	sign, slack := "<=", "+"
	if g.Least {
		sign, slack = ">=", "-"
	}
	text := sign + " " + digits(g.Bound)
	if g.Slack > 0 {
		text += fmt.Sprintf(" %s%g %%", slack, g.Slack*100)
	}
	return text
}
