package dashboard

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"strconv"
)

// update is the reply of /live.json: the points and parts that the browser lacks.
type update struct {
	Boot    string                     `json:"boot"`    // identifies this Page and start
	Seq     int                        `json:"seq"`     // of the last point; the next request's after
	AtMs    int64                      `json:"atMs"`    // the server's clock
	StepMs  int64                      `json:"stepMs"`  // between two points
	StartMs int64                      `json:"startMs"` // the server's start
	Whole   bool                       `json:"whole"`   // the points replace all earlier ones
	Points  map[string]json.RawMessage `json:"points"`  // by column name
	Have    string                     `json:"have"`    // what the browser shows now; the next request's have
	Parts   map[string]string          `json:"parts"`   // inner HTML, by element id
	Title   string                     `json:"title"`
}

// newUpdate returns what a browser lacks. Its query is the page's, with boot, after and have of an earlier
// update.
func (p *Page) newUpdate(v *view, query url.Values) (*update, error) {
	points, whole := v.after(query.Get("boot") == p.boot, query.Get("after"))
	u := &update{
		Boot: p.boot, Seq: v.added, AtMs: p.source.Now() / 1e6, StepMs: sampleInterval.Milliseconds(), StartMs: p.source.Facts().StartedNs / 1e6, Whole: whole,
		Points: map[string]json.RawMessage{}, Parts: map[string]string{}, Title: v.title(),
	}
	for _, c := range p.columns() {
		u.Points[c.name] = c.appendDeltas(nil, points)
	}
	have := query.Get("have")
	for i, part := range v.parts() {
		html, err := render(part.node)
		if err != nil {
			return nil, fmt.Errorf("dashboard: %s: %w", part.id, err)
		}
		mark := p.mark(html)
		u.Have += mark
		if at := i * len(mark); at+len(mark) > len(have) || have[at:at+len(mark)] != mark {
			u.Parts[part.id] = html
		}
	}
	return u, nil
}

// after returns the points after seq, or all of them, with whole set, if the history does not continue from
// there.
func (v *view) after(sameBoot bool, seq string) (points []point, whole bool) {
	n, err := strconv.Atoi(seq)
	missing := v.added - n
	if !sameBoot || err != nil || missing < 0 || missing > len(v.points) {
		return v.points, true
	}
	return v.points[len(v.points)-missing:], false
}

// mark returns a short hash of a part, different for each Page.
func (p *Page) mark(html string) string {
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], maphash.String(p.seed, html))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

func (p *Page) serveUpdate(v *view, r *http.Request) (body []byte, err error) {
	u, err := p.newUpdate(v, r.URL.Query())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the parts are markup
	err = encoder.Encode(u)
	return b.Bytes(), err
}
