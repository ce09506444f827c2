#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "anyccl/anyccl.h"

namespace anyccl::cli {

/// An element type as flags, tables and files name it.
struct TypeName {
  anycclDataType_t type;
  std::size_t bytes;
  std::string_view name, short_name;
};

struct RedopName {
  anycclRedOp_t redop;
  std::string_view name;
};

inline constexpr TypeName kTypes[] = {
    {anycclFloat32, 4, "float", "f32"},
    {anycclBfloat16, 2, "bfloat16", "bf16"},
    {anycclInt64, 8, "int64", "i64"},
    {anycclFloat16, 2, "half", "f16"},
    {anycclFloat64, 8, "double", "f64"},
    {anycclInt32, 4, "int32", "i32"},
    {anycclInt8, 1, "int8", "i8"},
    {anycclUint8, 1, "uint8", "u8"},
    {anycclInt16, 2, "int16", "i16"},
    {anycclUint16, 2, "uint16", "u16"},
    {anycclUint32, 4, "uint32", "u32"},
    {anycclUint64, 8, "uint64", "u64"},
    {anycclFloat8e4m3, 1, "f8e4m3", "e4m3"},
    {anycclFloat8e5m2, 1, "f8e5m2", "e5m2"},
    {anycclBool, 1, "bool", "b8"},
    {anycclComplexFloat, 8, "complex64", "c64"},
    {anycclComplexDouble, 16, "complex128", "c128"},
};
inline constexpr RedopName kRedops[] = {
    {anycclSum, "sum"},   {anycclMax, "max"},   {anycclMin, "min"},   {anycclProd, "prod"},
    {anycclAvg, "avg"},   {anycclLand, "land"}, {anycclLor, "lor"},   {anycclLxor, "lxor"},
    {anycclBand, "band"}, {anycclBor, "bor"},   {anycclBxor, "bxor"},
};

constexpr bool is_complex(anycclDataType_t type) {
  return type == anycclComplexFloat || type == anycclComplexDouble;
}
constexpr bool is_float(anycclDataType_t type) {
  return type == anycclFloat16 || type == anycclFloat32 || type == anycclFloat64 ||
         type == anycclBfloat16 || type == anycclFloat8e4m3 || type == anycclFloat8e5m2;
}
/// Whether the library has the operator for the type.
constexpr bool is_possible(anycclDataType_t type, anycclRedOp_t redop) {
  if (is_complex(type)) return redop == anycclSum || redop == anycclProd || redop == anycclAvg;
  if (is_float(type)) return redop <= anycclAvg;
  return type != anycclBool || redop != anycclAvg;
}

}  // namespace anyccl::cli
