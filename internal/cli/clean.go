package cli

import "reflect"

// Clean returns a copy of a record from other machines in which control characters of all strings are escaped, line ends too: none of
// its fields adds a line or a cell to a text.
func Clean[T any](record T) T {
	clean(reflect.ValueOf(&record).Elem())
	return record
}

// clean cleans a value that can be set. What it refers to is replaced by a clean copy.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text := Escape(v.String(), ""); text != v.String() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(cleaned(v.Elem()).Addr())
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(cleaned(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() { // it is exported
				clean(field)
			}
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 { // bytes are no text
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			clean(c.Index(i))
		}
		v.Set(c)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		c := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			c.SetMapIndex(cleaned(key), cleaned(value))
		}
		v.Set(c)
	default: // it has no text
	}
}

// cleaned returns a clean copy of a value.
func cleaned(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	clean(c)
	return c
}
