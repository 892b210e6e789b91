package principal

import "strings"

// Operators are the e-mail addresses of the people who may operate the
// installation over the API, in lower case. The zero value names nobody.
type Operators map[string]bool

// NewOperators returns the operators with the given e-mail addresses.
func NewOperators(addresses []string) Operators {
	operators := Operators{}
	for _, address := range addresses {
		operators[strings.ToLower(address)] = true
	}
	return operators
}

// Names reports whether email is the address of an operator; upper and lower
// case make no difference.
func (o Operators) Names(email string) bool { return o[strings.ToLower(email)] }

// Admits reports whether a credential of the person with the given e-mail
// address may operate the installation. The address must be verified, because
// anyone can sign up with an address that is not theirs. Access tokens are
// refused: they are stored in scripts, and live for years.
func (o Operators) Admits(c Credential, email string, verified bool) bool {
	return c.Kind == IDToken && verified && o.Names(email)
}
