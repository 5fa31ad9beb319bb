package cli

import "reflect"

// Clean returns a copy of a record from other machines in which control characters of all strings are escaped, line ends too: none of
// its fields adds a line or a cell to a text.
func Clean[T any](record T) T {
	return cleaned(reflect.ValueOf(&record).Elem()).Interface().(T) //nolint:forcetypeassert // of the same type
}

func cleaned(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		c := reflect.New(v.Type()).Elem()
		c.SetString(Escape(v.String(), ""))
		return c
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		if v.Kind() == reflect.Interface {
			return cleaned(v.Elem())
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(cleaned(v.Elem()))
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(cleaned(v.Field(i)))
			}
		}
		return c
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 { // bytes are no text
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(cleaned(v.Index(i)))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			c.SetMapIndex(cleaned(key), cleaned(value))
		}
		return c
	default:
		return v
	}
}
