package dashboard

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"

	"cellserver/internal/edge/dashboard/words"
)

// weightOf returns the largest weight, from 0 to 1, that an Accept header gives to name or to a subtag of it,
// as zh-CN is of zh.
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
			weight, _ = strconv.ParseFloat(text, 64) // 0 for an invalid number
		}
		if weight <= 1 {
			most = max(most, weight)
		}
	}
	return most
}

// textsFor returns the texts in the language of the query or, without one, of the browser.
func (p *Page) textsFor(requested, acceptLanguage string) *words.Texts {
	prefersChinese := weightOf(acceptLanguage, "zh") > weightOf(acceptLanguage, "en")
	if requested == "zh" || requested != "en" && prefersChinese {
		return p.chinese
	}
	return p.english
}

// fromElsewhere reports whether another site or another port of this one asks.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// write sends a response, compressed if the browser accepts that. Responses to requests from other sites stay
// uncompressed: the page mixes secrets with input that another site can choose, and the compressed size would
// leak.
func (p *Page) write(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header() // no Vary, as nothing is stored
	if fromElsewhere(r) || weightOf(r.Header.Get("Accept-Encoding"), "gzip") == 0 {
		_, _ = w.Write(body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	to, ok := p.compressors.Get().(*gzip.Writer) // about a megabyte each
	if ok {
		to.Reset(w)
	} else {
		to, _ = gzip.NewWriterLevel(w, gzip.BestCompression) // the level is valid
	}
	_, _ = to.Write(body)
	_ = to.Close()
	to.Reset(nil)
	p.compressors.Put(to)
}
