package dashboard

import (
	"strconv"
	"strings"

	"cellserver/internal/edge/dashboard/words"
)

// weightOf returns how much the sender of an Accept header wants something, from 0 for not at all to 1: the most that it gives to
// the name, or to what begins with the name and a hyphen, as zh-CN does with zh.
func weightOf(accept, name string) (most float64) {
	for one := range strings.SplitSeq(accept, ",") {
		given, parameter, weighted := strings.Cut(one, ";")
		given, _, _ = strings.Cut(strings.TrimSpace(given), "-")
		if !strings.EqualFold(given, name) {
			continue
		}
		weight := 1.0
		if weighted {
			text, _ := strings.CutPrefix(strings.ReplaceAll(parameter, " ", ""), "q=")
			weight, _ = strconv.ParseFloat(text, 64) // what is no number weighs nothing
		}
		if weight <= 1 {
			most = max(most, weight)
		}
	}
	return most
}

// textsFor returns the texts in the language of the query or, without one, of the browser.
func textsFor(requested, acceptLanguage string) *words.Texts {
	switch requested {
	case "en":
		return words.English()
	case "zh":
		return words.Chinese()
	}
	en, zh := weightOf(acceptLanguage, "en"), weightOf(acceptLanguage, "zh")
	if zh > en {
		return words.Chinese()
	}
	return words.English()
}
