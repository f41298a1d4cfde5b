package report

import "fmt"

// Goal is a bound that was set beforehand, and how near the measurement came.
type Goal struct {
	Scenario string  `json:"scenario"`
	Text     string  `json:"text"`
	Least    bool    `json:"least"` // the bound is the least that is wanted; else the most
	Bound    float64 `json:"bound"`
	Slack    float64 `json:"slack"` // share of the bound by which it may be missed without being called missed
	Got      Spread  `json:"got"`
	Why      string  `json:"why,omitempty"` // it was not measured
}

// AtMost judges the median of values by a bound above.
func AtMost(text string, bound float64, values []float64) Goal {
	return Goal{Text: text, Bound: bound, Got: NewSpread(values)}
}

// AtLeast judges the median of values by a bound below.
func AtLeast(text string, bound float64, values []float64) Goal {
	return Goal{Text: text, Bound: bound, Got: NewSpread(values), Least: true}
}

// The outcomes of a goal.
const (
	Met         = "met"
	Missed      = "missed"
	NotMeasured = "not measured"
)

// Outcome is Met, Missed or NotMeasured.
func (g Goal) Outcome() string {
	switch {
	case g.Why != "":
		return NotMeasured
	case g.Least && g.Got.Median < g.Bound*(1-g.Slack), !g.Least && g.Got.Median > g.Bound*(1+g.Slack):
		return Missed
	}
	return Met
}

// Wanted is the bound in words.
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
