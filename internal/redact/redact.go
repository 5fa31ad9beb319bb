// Package redact removes secrets from addresses, for results, messages and logs.
package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scheme matches the scheme of an address, with the prefix of a part of an object, as in tar+https://.
var scheme = regexp.MustCompile(`^((?:tar|parquet)\+)?([A-Za-z][A-Za-z0-9.-]*)://`)

// parameters are the parameters of S3 addresses, none of which is a secret. The query of any other address may be a
// signature or a token.
var parameters = []string{"endpoint", "region", "path_style", "ca_file", "read_only"}

// Address returns an address, or several in braces, without user and password, and without a query that may have a secret. It returns paths of
// files, and addresses without secrets, unchanged.
func Address(text string) string {
	if inner, ok := list(text); ok {
		all := strings.Split(inner, ",")
		for i := range all {
			all[i] = Address(all[i])
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	match := scheme.FindStringSubmatch(text)
	if match == nil {
		return text
	}
	rest, fragment, hasFragment := strings.Cut(text[len(match[0]):], "#")
	place, query, hasQuery := strings.Cut(rest, "?")
	_, place = splitUser(place)
	text = match[0] + place
	if hasQuery && strings.EqualFold(match[2], "s3") {
		if query = publicQuery(query); query != "" {
			text += "?" + query
		}
	}
	if hasFragment && match[1] != "" { // elsewhere a fragment is not allowed
		text += "#" + fragment
	}
	return text
}

// Credentials reports whether an address has a user or a password.
func Credentials(text string) bool {
	if inner, ok := list(text); ok {
		return slices.ContainsFunc(strings.Split(inner, ","), Credentials)
	}
	match := scheme.FindString(text)
	if match == "" {
		return false
	}
	place, _, _ := strings.Cut(text[len(match):], "?")
	user, _ := splitUser(place)
	return user != ""
}

// list returns the elements of several addresses in braces.
func list(text string) (inner string, ok bool) {
	inner, opened := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	return inner, opened && closed
}

// splitUser splits the text after the scheme into the user with its "@" and the rest. A password may have any character:
// the last "@" before the first element of the path that follows it ends the user.
func splitUser(place string) (user, rest string) {
	host, _, _ := strings.Cut(place, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		return place[:i+1], place[i+1:]
	}
	return "", place
}

// publicQuery removes all parameters but those of S3 addresses.
func publicQuery(query string) string {
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, encoded, _ := strings.Cut(parameter, "=")
		value, err := url.QueryUnescape(encoded)
		if err != nil || !slices.Contains(parameters, name) {
			continue
		}
		if name == "endpoint" {
			if public := publicEndpoint(value); public != value {
				parameter = name + "=" + url.QueryEscape(public)
			}
		}
		kept = append(kept, parameter)
	}
	return strings.Join(kept, "&")
}

// publicEndpoint removes user, password and query of an endpoint, which may lack a scheme.
func publicEndpoint(endpoint string) string {
	if strings.Contains(endpoint, "://") {
		return Address(endpoint)
	}
	return strings.TrimPrefix(Address("https://"+endpoint), "https://")
}
