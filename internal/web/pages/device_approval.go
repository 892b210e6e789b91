package pages

import (
	"errors"
	"strings"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/fault"
	"atelier/internal/people/device"
)

// devicePage is the template data of the page on which a person approves or
// refuses a device.
type devicePage struct {
	device.Grant
	Code string
}

// deviceForm handles GET /device: it shows the device that the code in the URL
// belongs to, or a form to enter the code. Opening the URL never approves the
// device, because an attacker may have sent the URL to get their own device
// approved.
func (s accountPages) deviceForm(v *pageRequest) error {
	code := v.queryValue("code")
	// Any site can make a browser open this URL with a wrong code, which
	// counts towards the person's rate limit. A code from another site is
	// therefore looked up only after the person submits it.
	if code == "" || v.r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return v.showPage("code", code)
	}
	g, err := s.Accounts.Devices.OpenGrant(v.r.Context(), v.currentPrincipal(), code)
	if err != nil {
		return v.refuseCode(code, err)
	}
	return v.showPage("device", devicePage{g, formatUserCode(code)})
}

// formatUserCode formats a valid code as devices show it: upper-case letters
// with a dash in the middle.
func formatUserCode(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	return code[:len(code)/2] + "-" + code[len(code)/2:]
}

// approveVerdict is the form value of the button that approves a device.
const approveVerdict = "approve"

// decideDevice handles POST /device: it approves or refuses a device.
func (s accountPages) decideDevice(v *pageRequest) error {
	yes := v.form.Get("verdict") == approveVerdict
	code := v.form.Get("code")
	_, err := s.Accounts.Devices.DecideGrant(v.r.Context(), v.currentPrincipal(), devicelogin.Answer{GrantID: v.form.Get("grant"), UserCode: code, Approve: yes})
	if err != nil {
		return v.refuseCode("", err)
	}
	if !yes {
		return v.showPage("message", refusedMessage)
	}
	return v.showPage("message", approvedMessage)
}

// The pages shown after a device was approved or refused.
var (
	refusedMessage = messagePage{
		Title: "Refused",
		Alert: true,
		Text:  "You refused the device: it was not signed in. If another person sent you the code, they may have tried to get into your account.",
		Link:  "/devices",
		Label: "See your devices",
	}
	approvedMessage = messagePage{
		Title: "Approved",
		Text:  "You can go back to your device: it will be signed in shortly. You can sign it out again under Devices.",
		Link:  "/devices",
		Label: "See your devices",
	}
)

// refuseCode responds to a device code that cannot be approved or refused. A
// person who has already approved or refused the device sees that decision
// again. Other people can enter another code.
func (v *pageRequest) refuseCode(code string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	v.record.Err = err
	switch f.Details["reason"] {
	case "refused":
		return v.renderPage(statusOf(f.Code), "message", refusedMessage, nil)
	case "approved":
		return v.renderPage(statusOf(f.Code), "message", approvedMessage, nil)
	}
	return v.showFormAgain("code", code, err, fault.NotFound)
}
