// ddiff_register adds the operations of the domain "ddiff" to the options of a session. ptx is the text of the kernels, which stays. It returns NULL, or a message that the
// caller frees. table is that of ONNX Runtime's C interface.
char *ddiff_register(void *const *table, void *options, const char *ptx);
