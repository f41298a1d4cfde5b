package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// policyText tells how a policy decides.
func policyText(t *words.Texts, p *namedlimit.Policy) string {
	switch p.Constant {
	case limiter.Deny:
		return t.Denied
	case limiter.Unlimited:
		return t.Unlimited
	default:
	}
	texts := make([]string, len(p.Rules))
	for i := range p.Rules {
		texts[i] = ruleText(t, &p.Rules[i])
	}
	return strings.Join(texts, " · ")
}

// ruleText tells a rule's limit, after the rule's name if it has one.
func ruleText(t *words.Texts, r *namedlimit.Rule) string {
	text := limitText(t, r)
	if r.Name != "" {
		return r.Name + t.Colon + text
	}
	return text
}

func limitText(t *words.Texts, r *namedlimit.Rule) string {
	most := words.Grouped(r.Capacity)
	switch r.Algorithm {
	case namedlimit.FixedWindow:
		return rateText(t, most, r.PeriodSec) + t.Comma + t.Fixed
	case namedlimit.SlidingWindow:
		return rateText(t, most, r.PeriodSec) + t.Comma + t.Sliding
	case namedlimit.ApproximateWindow:
		return rateText(t, most, r.PeriodSec) + t.Comma + t.Approximate
	case namedlimit.Quota:
		return quotaText(t, most, r.Calendar)
	default:
		return fmt.Sprintf(t.AtOnce, most) + t.Comma + rateText(t, words.Grouped(r.Count), r.PeriodSec)
	}
}

// callText tells the limit of a call of a kind.
func callText(t *words.Texts, kind limiter.Kind, r *namedlimit.Rule) string {
	switch {
	case kind == limiter.Bucket, kind == limiter.Concurrency:
		return fmt.Sprintf(t.AtOnce, words.Grouped(r.Capacity))
	case kind == limiter.Quota && r.Calendar == calendar.Spec{}:
		return fmt.Sprintf(t.APeriod, words.Grouped(r.Capacity))
	}
	return limitText(t, r)
}

// rateText names the usual periods.
func rateText(t *words.Texts, count string, periodSec int64) string {
	switch periodSec {
	case 1:
		return fmt.Sprintf(t.PerSecond, count)
	case int64(time.Minute / time.Second):
		return fmt.Sprintf(t.PerMinute, count)
	case int64(time.Hour / time.Second):
		return fmt.Sprintf(t.PerHour, count)
	case int64(24 * time.Hour / time.Second):
		return fmt.Sprintf(t.PerDay, count)
	default:
		return fmt.Sprintf(t.PerPeriod, count, t.Period(periodSec))
	}
}

// quotaText names the zone of windows that depend on it, and a start that is not the natural one.
func quotaText(t *words.Texts, most string, c calendar.Spec) string {
	units := [calendar.Everies]string{t.ASecond, t.AMinute, t.AnHour, t.ADay, t.AWeek, t.AMonth, t.AYear}
	text := fmt.Sprintf(units[c.Every], most)
	switch {
	case c.Epoch:
		text += fmt.Sprintf(t.InZone, t.SinceEpoch)
	case c.Zone != "":
		text += fmt.Sprintf(t.InZone, c.Zone)
	case c.Every >= calendar.Day:
		text += fmt.Sprintf(t.InZone, "UTC")
	}
	start := c.Start.Text(c.Every)
	if start == "" {
		return text
	}
	switch c.Every {
	case calendar.Week:
		weekdays := strings.Fields(t.Weekdays)
		n, _ := strconv.Atoi(start) // 1 to 7
		start = weekdays[(n-1)%len(weekdays)]
	case calendar.Month:
		start = fmt.Sprintf(t.DayOfMonth, start)
	default:
	}
	return text + t.Comma + fmt.Sprintf(t.FromStart, start)
}
